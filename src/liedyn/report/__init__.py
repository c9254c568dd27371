"""Plots and texts about robots and their motion.

`plots.plot_data` says what a plot needs, as plain arrays; `plots.save_plots` draws all of them. Nothing here
uses pyplot or keeps global state.
"""
