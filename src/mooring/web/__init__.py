"""The page: a server that shows in a browser what `explain`, `compare` and `simulate` say."""
