"""A motion as one HTML file: `page.run_data` collects the data, `page` writes it, and the scripts in this folder draw it.

The scripts take 50 kB and use WebGL 2 without a library. Packages that ship three.js are wheels of 2.6 to 8.5 MB (meshcat, viser,
pythreejs, k3d). The smallest bundle in them takes 0.85 MB of each page, dates from 2021 and requires its server.
"""
