"""An exported log, and a proof that an entry is in it, checked without dpquery.

dpquery ledger export --schema shop.yaml > log.jsonl
dpquery ledger prove ENTRY --schema shop.yaml > proof.json
python docs/examples/check_log.py log.jsonl proof.json
"""

import base64
import json
import sys
from hashlib import sha256
from pathlib import Path


def root(leaves):
    """RFC 6962: the left part holds the largest power of two below the number of leaves."""
    if len(leaves) == 1:
        return leaves[0]
    split = 1 << (len(leaves) - 1).bit_length() - 1
    return sha256(b"\1" + root(leaves[:split]) + root(leaves[split:])).digest()


def led_to(leaf, index, size, hashes):
    """The root to which a leaf and the hashes beside its way lead; a node that is last on an odd level has nothing beside it."""
    for beside in hashes:
        while index % 2 == 0 and index == size - 1:
            index, size = index // 2, (size + 1) // 2
        pair = beside + leaf if index % 2 else leaf + beside
        leaf, index, size = sha256(b"\1" + pair).digest(), index // 2, (size + 1) // 2
    return leaf


link, leaves, ids = bytes(32), [], []
for line in Path(sys.argv[1]).read_text(encoding="utf-8").splitlines():
    entry = json.loads(line)
    body = json.dumps(entry["body"], sort_keys=True, separators=(",", ":"))
    commitment = sha256(body.encode()).digest()
    link = sha256(link + commitment).digest()
    leaves.append(sha256(b"\0" + commitment).digest())
    ids.append(entry["body"]["id"])
    if (entry["seq"], entry["commitment"], entry["link"]) != (len(leaves), commitment.hex(), link.hex()):
        sys.exit(f"line {len(leaves)} does not follow")
print(f"{len(leaves)} entries, root {base64.b64encode(root(leaves)).decode()}")

if len(sys.argv) > 2:
    proof = json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))
    _, size, signed, *_ = proof["checkpoint"].split("\n")
    leaf = sha256(b"\0" + bytes.fromhex(proof["commitment"])).digest()
    if led_to(leaf, proof["index"], int(size), map(bytes.fromhex, proof["hashes"])) != base64.b64decode(signed):
        sys.exit("the proof does not lead to the root")
    if root(leaves[: int(size)]) != base64.b64decode(signed):
        sys.exit("the root is not that of the log")
    if ids[proof["index"]] != proof["entry"]:
        sys.exit("the proof is of another entry")
    print(f"entry {proof['entry']} is in it; who signed the root is checked with the key")
