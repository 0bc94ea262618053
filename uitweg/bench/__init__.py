"""`uitweg bench`: how quick the engine is here, how near the limit, and beside what else there is.

client.py     one request over HTTP, with its clock
work.py       the requests that are measured
servers.py    our server and the peers, as processes
cases.py      what is measured over HTTP, the same for every server
inside.py     what is measured inside the engine
steps.py      what a step costs by its number of rows
roofline.py   memory bandwidth over the bytes of a step, and how near it steps come
soak.py       many requests with random cancels: no leak, no wrong text
report.py     tables
"""
