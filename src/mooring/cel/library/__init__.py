"""The functions of expressions, one module for each library of the reference."""
