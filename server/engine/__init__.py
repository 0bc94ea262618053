"""The engine: llama.cpp's low-level API, one thread that owns the context, many sequences.

backend.py    the seam to the HTTP surface: requests in, pieces out
engine.py     the thread: loads, takes jobs, steps until closed
scheduler.py  which replies are in the making, and what comes of each step
plan.py       which tokens go into the next step
sequences.py  what the KV cache holds: live and parked sequences, shared prefixes, room
kept.py       prefilled prefixes on disk
picker.py     the next token: greedy, sampled, under a grammar
words.py      tokens to text, stop strings
native.py, model.py, context.py   the library itself
"""
