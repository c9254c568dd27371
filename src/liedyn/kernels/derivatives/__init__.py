"""Derivatives of the recursions by q, v and the inputs."""
