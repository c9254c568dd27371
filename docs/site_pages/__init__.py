"""What of the site is made from the code."""
