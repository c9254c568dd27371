"""Readers and writers of files. Their errors and warnings name the line and the key."""
