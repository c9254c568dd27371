"""Pictures and texts about robots and their motion.

`pictures.picture_data` says what a picture needs, as plain arrays; `pictures.all_pictures` draws all of them. Nothing here
uses pyplot or keeps global state.
"""
