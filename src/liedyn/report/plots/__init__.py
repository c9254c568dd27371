"""Plots by Matplotlib: `plot_data` contains the data of a plot as plain arrays, `save_plots` draws all plots."""
