"""llama.cpp's own server, through the package xllamacpp. Prints its address, then serves.

Run by `uitweg bench --against` with the Python of an environment that has xllamacpp.
"""

import argparse
import sys
import threading

import xllamacpp

parser = argparse.ArgumentParser()
parser.add_argument("model")
parser.add_argument("--threads", type=int, required=True)
parser.add_argument("--slots", type=int, required=True)
parser.add_argument("--context", type=int, required=True)
arguments = parser.parse_args()

params = xllamacpp.CommonParams()
params.model.path = arguments.model
params.n_ctx = arguments.context
params.n_parallel = arguments.slots
params.cpuparams.n_threads = arguments.threads
params.cpuparams_batch.n_threads = arguments.threads
params.kv_unified = True
params.use_jinja = True
params.warmup = True
params.port = 0
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
threading.Thread(target=sys.stdin.read, daemon=True).start()
threading.Event().wait()
