"""MuJoCo's XML format (MJCF) -> Robot."""
