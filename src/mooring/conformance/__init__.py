"""Golden cases of the reference, replayed through the engine and compared field by field."""
