"""CEL, the Common Expression Language, in the dialect that Kubernetes gives to device selectors.

A text goes through `lexer`, `parser` (which expands `macros`), `checker` and `validation`, and `plan` makes
it into closures. `program` does all of this. The room knows nothing of devices.
"""
