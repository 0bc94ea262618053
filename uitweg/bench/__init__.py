"""`uitweg bench`: how quick the engine is here, how near the limit, and beside what else there is.

client.py     one request over HTTP, with its clock
work.py       the requests that are measured
servers.py    our server and the peers, as processes
cases.py      what is measured over HTTP, the same for every server
inside.py     what is measured inside the engine
roofline.py   memory bandwidth over bytes per token
soak.py       many requests with random cancels: no leak, no wrong text
report.py     tables
"""
