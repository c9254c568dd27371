"""The command line. Each command parses, loads, makes one library call, writes and echoes. Entry point: `app.main`."""
