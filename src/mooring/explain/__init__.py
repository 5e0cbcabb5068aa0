"""Answers as data: why a pod goes where it goes, what would make it fit, and what would change if."""
