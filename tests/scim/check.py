"""Runs scim2-tester against a SCIM door: `check.py ADDRESS TOKEN`. Fails if a check does."""

import collections
import sys

from httpx2 import Client
from scim2_client.engines.httpx2 import SyncSCIMClient
from scim2_tester import Status, check_server


def main() -> int:
    address, token = sys.argv[1:]
    headers = {"Authorization": f"Bearer {token}"}
    with Client(base_url=address, headers=headers, timeout=30) as http:
        results = check_server(SyncSCIMClient(http))
    counts = collections.Counter(result.status.name for result in results)
    fine = {Status.SUCCESS, Status.SKIPPED, Status.COMPLIANT, Status.ACCEPTABLE}
    for result in results:
        if result.status not in fine:
            print(f"{result.status.name} {result.title} {result.resource_type or ''}: {result.reason}")
    print(", ".join(f"{count} {name.lower()}" for name, count in sorted(counts.items())))
    if counts["SUCCESS"] < 20:
        print("The suite asked too little.")
        return 1
    return int(any(result.status not in fine for result in results))


sys.exit(main())
