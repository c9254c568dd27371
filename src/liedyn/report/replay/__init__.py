"""A motion as one HTML file: `run_data` says what is shown, `page` writes it, the scripts next to it draw it in the browser.

The scripts are our own: 50 kB, for WebGL 2 without a library. Packages that ship three.js are wheels of 2.6 to 8.5 MB (meshcat,
viser, pythreejs, k3d); the smallest bundle in them takes 0.85 MB of each page, dates from 2021 and waits for its own server.
"""
