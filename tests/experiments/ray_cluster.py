"""A Ray cluster of a head and a second node on the loopback interface, in a process of its own: `python ray_cluster.py`.

It prints its address, kills the second node when it reads `kill`, and ends when it reads anything else or nothing more.
"""

import sys

from ray.cluster_utils import Cluster

NODE = {"num_cpus": 1, "node_ip_address": "127.0.0.1", "include_dashboard": False, "object_store_memory": 80 << 20}

if __name__ == "__main__":
    cluster = Cluster(initialize_head=True, head_node_args=NODE)
    try:
        second = cluster.add_node(**NODE)
        cluster.wait_for_nodes()
        print(cluster.address, flush=True)
        while sys.stdin.readline().strip() == "kill":
            cluster.remove_node(second, allow_graceful=False)
            print("killed", flush=True)
    finally:
        cluster.shutdown()
