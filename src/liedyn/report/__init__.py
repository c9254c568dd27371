"""Plots and texts about robots and their motion.

`plots.plot_data` defines the data of a plot as plain arrays; `plots.save_plots` draws all plots. No module uses pyplot or keeps
global state.
"""
