"""A robot as plain data: its description, what `build` makes of it, and what is checked about both.

Entry points: `model.Model`, `build`, `description.Robot`. It does without compiled code.
"""
