"""The live scheduler under deterministic faults: real code, virtual time, a model of the API server.

    python -m tools.fuzz --seeds 1000        many random worlds, on all cores
    python -m tools.fuzz --seed 17           one of them again, with its log

    loop.py         virtual time with sockets and processes that can be killed
    network.py      connections in memory, which can be cut, slowed down and silenced
    store.py        what etcd promises: one version for all, a history, compaction
    server.py       the API server: HTTP in, HTTP out, watches, refusals
    scheduler.py    one `mooring run`, from its start to its end or its death
    actors.py       users, nodes, controllers, another scheduler
    swarm.py        which features and faults a seed turns on
    invariants.py   what must hold at every step, and at rest
    memory.py       what is remembered of pods that are gone
    awaits.py       where a process can be killed
    hostile.py      nonsense: objects and answers
    world.py        all of these together: one seed
    shrink.py       fewer faults and actors, while the failure stays

See docs/decisions/0025-the-live-stack-in-virtual-time.md.
"""
