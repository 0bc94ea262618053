"""The published figures, made again and compared.

`published.json` holds what was published for this design. `produce.py` makes each entry that
needs no real model, on a scripted provider behind a real HTTP endpoint; `compare.py` puts the
two side by side. What tokens decide must agree exactly; times are shown as they come.
"""
