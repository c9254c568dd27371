"""Robot files: URDF, YAML, MJCF, and their shapes. Entry points: `urdf`, `robot_yaml`, `mjcf`."""
