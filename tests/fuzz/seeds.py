"""Inputs that are right: where the fuzzing of each format begins."""

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent


def files(*patterns: str) -> list[bytes]:
    """Return the contents of files of this project."""
    return [path.read_bytes() for each in patterns for path in sorted(ROOT.glob(each))]


REGISTERS = (
    '[{"id":"GPU-1","count":10,"devmem":32768,"devcore":100,"type":"NVIDIA-Tesla V100",'
    '"mode":"hami-core","health":true,"index":1,"numa":1,"custominfo":{"NetworkID":1}}]',
    '[{"id":"GPU-1","count":7,"devmem":40960,"devcore":100,"type":"NVIDIA A100","mode":"mig",'
    '"migProfiles":[{"name":"3g.20gb","memoryMB":19968,"core":43,"sliceCount":3,"placements":'
    '[{"start":0,"size":4},{"start":4,"size":4}]}],"migtemplate":[[{"Name":"1g.5gb","Core":14,'
    '"Memory":5120,"Count":1}]],"health":true}]',
    "GPU-1,10,32768,100,NVIDIA-Tesla V100,0,true:GPU-2,10,32768,100,NVIDIA-Tesla V100,1,false:",
    "DCU-1,4,65520,100,DCU-K100_AI,0,true,0,hami:DCU-2,4,65520,100,DCU-K100_AI,0,true,1,hami:",
    '[{"uuid":"GPU-m1","model":"MXC500","totalDevCount":16,"totalCompute":100,"totalVRam":65536,'
    '"numa":1,"healthy":true,"qosPolicy":"best-effort","linkZone":1}]',
)
DRS = (
    '{"devices":[{"index":"0","minor":"0","capacity":6},{"index":"1","capacity":"6"}],'
    '"profiles":{"1g.8gb":"0","2g.16gb":"1","3g.24gb":"2","6g.48gb":"3"}}',
)
ASSIGNMENTS = (
    "GPU-1,NVIDIA,3000,30:GPU-2,NVIDIA,3000,30:;;GPU-1,NVIDIA,1000,0:;",
    "0E3A8B1C-20304050,Ascend910B3,16384,0:;",
)
HANDSHAKES = (
    "Requesting_2026-11-15 23:25:11",
    "Requesting_2026.11.15 23:25:11",
    "Reported 2026-11-15 23:25:11.123 +0000 UTC m=+1.1",
    "Deleted_2026.11.15 23:25:11",
)
LOCKS = ("2026-11-15T23:25:11Z,default,p1", "2026-11-15T23:25:11.123+02:00")
STATUS_NOTES = ('{"nvidia.com/gpumem": 1572864, "nvidia.com/gpucores": null}',)
SCORES = ('[{"uuid":"GPU-1","score":{"GPU-2":120}},{"uuid":"GPU-2","score":{"GPU-1":120}}]',)
MIG = (
    '[{"containerIndex":0,"deviceIndex":0,"gpuUUID":"GPU-1","profile":"3g.20gb",'
    '"placement":{"start":0,"size":4}}]',
)
COMPUTE_UNITS = ('{"GPU-1":"0-3,8,10-12","GPU-2":"0-303"}', '{"GPU-1":" 0 - 1 , ,3"}')
TEMPLATES = ('[{"UUID":"0E3A8B1C","temp":"vir05_1c_16g"}]',)
DURATIONS = ("30s", "2m", "1h30m", "500ms", "1d2h3m4.5s", "0.25", "90")
MOMENTS = ("10:00", "23:59:59.5", "2026-11-16 10:00", "2026-11-16T10:00:00Z", "2m", "20261116")
LOADS = (
    "80",
    "20-60",
    "idle",
    "sine:20-80:10m:memory=50",
    "burst:5-95:5m:part=30s",
    "training:90-98:30m",
    "inference:10-80",
    "[{time: 1h, utilization: 80}, {time: 30m, utilization: 0-5}]",
    "{schedule: [{time: 1h, utilization: 80}], repeat: 3, memory: 20}",
    "{shape: ramp, utilization: 0-90, period: 10m}",
)
TRACES = (
    "time,utilization,memory,name\n0,10,50,default/a\n1m,NA,60,default/a/main\n",
    "value,timestamp_anon,container_ip\n55.5,100,10.0.0.1\n2147483648,160,10.0.0.1\n",
    "time,machineId,gpu0_util,gpu1_util,\n2017-10-03 00:00:00 PDT,m1,NA,5.0,\n",
)
UNIT_RECORDS = (
    '{"nvidia.com/gpumem":{"heads":"0123","cards":{"GPU-1":[[0,100],[200,300]],"GPU-2":[[100,200]]'
    "}}}",
    '{"nvidia.com/gpumem":{"GPU-1":[[0,100]]}}',
    '{"in the Node\'s status":{"resources":["nvidia.com/gpumem"]}}',
)
REQUESTS = tuple(
    json.dumps({"command": command, "arguments": arguments})
    for command, arguments in {
        "status": {},
        "events": {"since": 1, "after": 1.5},
        "follow": {"since": 0},
        "load": {"targets": ["nvidia/0"], "load": "sine:20-80:10m"},
        "watch": {},
        "set": {"values": {"nvidia-cards": "3", "nvidia-memory": "1024"}, "reset": False},
        "reload": {},
        "play": {"text": "steps: [{at: 1s, fail: nvidia/0, for: 1s}]", "name": "x", "seed": 1},
        "stop": {},
        "fail": {"targets": ["nvidia/0"], "for": "1s"},
        "recover": {"targets": ["all"]},
        "xid": {"targets": ["nvidia/1"], "xid": 79},
        "lose": {"targets": ["nvidia"], "for": 0.5},
        "slow": {"targets": ["nvidia.com/gpu"], "call": "allocate", "seconds": "1s"},
    }.items()
)


def node(register: str = REGISTERS[0]) -> dict[str, Any]:
    """A Node with cards of HAMi's, and of vendors' own plugins."""
    capacity = {
        "nvidia.com/gpu": "20",
        "nvidia.com/gpumem": "65536",
        "nvidia.com/gpucores": "200",
        "huawei.com/Ascend910B3": "4",
        "aws.amazon.com/neuroncore": "8",
        "memory": "32Gi",
        "cambricon.com/vmlu": "10",
        "cpu": "100m",
        "hygon.com/dcunum": "8",
    }
    return {
        "kind": "Node",
        "metadata": {
            "name": "n1",
            "resourceVersion": "100",
            "annotations": {
                "hami.io/node-nvidia-register": register,
                "hami.io/node-handshake": HANDSHAKES[0],
                "hami.io/mutex.lock": LOCKS[0],
                "hami.io/node-nvidia-score": SCORES[0],
                "hami.io/node-register-Ascend910B3": REGISTERS[0],
                "hami.io/node-dcu-register": REGISTERS[3],
            },
        },
        "spec": {"unschedulable": False},
        "status": {
            "capacity": capacity,
            "allocatable": capacity,
            "nodeInfo": {"kubeletVersion": "v1.35.8"},
            "conditions": [{"type": "Ready", "status": "True", "message": "fine"}],
        },
    }


def pod() -> dict[str, Any]:
    """A Pod that HAMi's scheduler has assigned devices to."""
    limits = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1000", "nvidia.com/gpucores": "30"}
    container = {"name": "main", "resources": {"limits": limits, "requests": limits}}
    return {
        "kind": "Pod",
        "metadata": {
            "name": "p1",
            "namespace": "default",
            "uid": "u1",
            "resourceVersion": "7",
            "labels": {"a": "b"},
            "annotations": {
                "hami.io/vgpu-node": "n1",
                "hami.io/vgpu-time": "1763248000",
                "hami.io/bind-time": "1763248000",
                "hami.io/bind-phase": "allocating",
                "hami.io/vgpu-devices-to-allocate": ASSIGNMENTS[0],
                "hami.io/vgpu-devices-allocated": ASSIGNMENTS[0],
                "hami.io/vgpu-mig-allocations": MIG[0],
            },
        },
        "spec": {
            "schedulerName": "hami-scheduler",
            "nodeName": "n1",
            "initContainers": [container],
            "containers": [container, container],
        },
        "status": {
            "phase": "Pending",
            "reason": "UnexpectedAdmissionError",
            "message": "Allocate failed due to no devices, which is unexpected",
            "conditions": [
                {"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available"}
            ],
        },
    }


NODES = [json.dumps(node(register)).encode() for register in REGISTERS]
_LABELS = {
    "labels": {"nvidia.com/gpu.count": "8", "gpu": "on", "kubernetes.io/hostname": "n1"},
    "annotations": {"hami-mock.io/labels": "gpu,nvidia.com/gpu.count"},
}
LABELLED_NODES = [json.dumps({"metadata": {**node()["metadata"], **_LABELS}}).encode()]
PODS = [json.dumps(pod()).encode()]
OBJECTS = [*NODES, *PODS, json.dumps({"kind": "List", "items": [node(), pod()]}).encode()]

KUBECONFIGS = [
    "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n"
    "clusters: [{name: k, cluster: {server: 'https://10.0.0.1:6443', proxy-url: 'http://u:p@p:1', "
    "certificate-authority-data: Q0E=, tls-server-name: x, insecure-skip-tls-verify: true}}]\n"
    f"users: [{{name: u, user: {{{user}}}}}]\n"
    for user in (
        "token: t",
        "tokenFile: kubeconfig, as: jane, as-groups: [g], as-user-extra: {a: [b]}",
        "username: u, password: p, client-certificate: kubeconfig, client-key-data: Q0E=",
        "auth-provider: {name: oidc, config: {id-token: a.b.c}}",
        "exec: {apiVersion: v1, command: x}",
    )
]
CREDENTIALS = [
    '{"apiVersion": "v1", "kind": "ExecCredential", "status": {"token": "t", '
    '"expirationTimestamp": "2030-01-02T03:04:05Z"}}',
    '{"apiVersion": "v1", "kind": "ExecCredential", "status": {"clientCertificateData": "C", '
    '"clientKeyData": "K"}}',
]
