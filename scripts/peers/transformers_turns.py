"""transformers in fp32, greedy, turn by turn: the way the six tasks' published figures were made.

Reads requests as JSON lines, writes one JSON line a turn. Run by `uitweg bench --against`.
"""

import json
import sys
import time
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

path, threads = Path(sys.argv[1]), int(sys.argv[2])
torch.set_num_threads(threads)
names = {"gguf_file": path.name}
tokenizer = AutoTokenizer.from_pretrained(path.parent, **names)
model = AutoModelForCausalLM.from_pretrained(path.parent, dtype=torch.float32, **names).eval()
print(json.dumps({"ready": True}), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    begun = time.monotonic()
    ids = tokenizer.apply_chat_template(
        request["messages"],
        tools=request.get("tools"),
        add_generation_prompt=True,
        return_tensors="pt",
        return_dict=True,
    )
    with torch.inference_mode():
        out = model.generate(**ids, do_sample=False, max_new_tokens=request["max_tokens"])
    made = out.shape[1] - ids["input_ids"].shape[1]
    print(json.dumps({"s": time.monotonic() - begun, "tokens": made}), flush=True)
