"""Comparison of messages with the texts that tests expect."""


def has_parts(text: str, pattern: str) -> bool:
    """Return whether a text contains the parts of a pattern, which " … " separates, in their order."""
    position = 0
    for part in pattern.split(" … "):
        start = text.find(part, position)
        if start < 0:
            return False
        position = start + len(part)
    return True
