"""Pictures: what they are drawn from, and how each is drawn."""
