"""Pictures by Matplotlib. `plot_data` says what a picture needs, as plain arrays; `save_plots` draws all of them."""
