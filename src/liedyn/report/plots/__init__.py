"""Plots by Matplotlib. `plot_data` says what a plot needs, as plain arrays; `save_plots` draws all of them."""
