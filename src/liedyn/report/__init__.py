"""Pictures and texts about robots and their motion.

`recording` says what a picture needs, as plain arrays; `figures` draws all of them. Nothing here uses pyplot or keeps
global state.
"""
