"""The parts of three Kubernetes schemas that our manifests use, as JSON Schema.

Facts of `ray.io/v1` RayJob and RayCluster (KubeRay 1.1 to 1.6: names, types, what is required) and of the core `v1`
pod template and volume claim. Every object is closed, as the API server treats it with strict validation: a misspelt
field is an error. What our manifests do not use is left out.
"""

QUANTITY = {"type": "string", "pattern": r"^\d+(\.\d+)?(m|[KMGTP]i?)?$"}
NAME = {"type": "string", "pattern": r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "maxLength": 63}
COUNT = {"type": "integer", "minimum": 0}
STRINGS = {"type": "object", "additionalProperties": {"type": "string"}}


def closed(required=(), **properties):
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def listed(item):
    return {"type": "array", "items": item, "minItems": 1}


AMOUNTS = {"type": "object", "additionalProperties": QUANTITY}  # cpu, memory, nvidia.com/gpu, storage
METADATA = closed(["name"], name=NAME, namespace=NAME, labels=STRINGS, annotations=STRINGS)
PORT = closed(
    ["containerPort"],
    containerPort={"type": "integer", "minimum": 1, "maximum": 65535},
    # Names of ports are shorter than other names.
    name={**NAME, "maxLength": 15},
)
CONTAINER = closed(
    ["name", "image"],
    name=NAME,
    image={"type": "string", "minLength": 1},
    ports=listed(PORT),
    env=listed(closed(["name"], name={"type": "string"}, value={"type": "string"})),
    resources=closed(requests=AMOUNTS, limits=AMOUNTS),
    volumeMounts=listed(closed(["name", "mountPath"], name=NAME, mountPath={"type": "string", "pattern": "^/"})),
)
VOLUME = closed(
    ["name"],
    name=NAME,
    persistentVolumeClaim=closed(["claimName"], claimName=NAME),
    emptyDir=closed(medium={"enum": ["", "Memory"]}, sizeLimit=QUANTITY),
)
POD = closed(
    ["spec"], metadata=METADATA, spec=closed(["containers"], containers=listed(CONTAINER), volumes=listed(VOLUME))
)
HEAD = closed(["template"], rayStartParams=STRINGS, template=POD, serviceType={"type": "string"})
WORKERS = closed(
    ["groupName", "minReplicas", "maxReplicas", "template"],
    groupName=NAME,
    replicas=COUNT,
    minReplicas=COUNT,
    maxReplicas=COUNT,
    numOfHosts=COUNT,
    rayStartParams=STRINGS,
    template=POD,
)
CLUSTER = closed(
    ["headGroupSpec"],
    rayVersion={"type": "string", "pattern": r"^\d+\.\d+\.\d+$"},
    enableInTreeAutoscaling={"type": "boolean"},
    headGroupSpec=HEAD,
    workerGroupSpecs=listed(WORKERS),
)
RAY_JOB = closed(
    ["apiVersion", "kind", "metadata", "spec"],
    apiVersion={"const": "ray.io/v1"},
    kind={"const": "RayJob"},
    metadata=METADATA,
    spec=closed(
        ["entrypoint", "rayClusterSpec"],
        entrypoint={"type": "string", "minLength": 1},
        activeDeadlineSeconds={"type": "integer", "minimum": 1},
        backoffLimit=COUNT,
        shutdownAfterJobFinishes={"type": "boolean"},
        ttlSecondsAfterFinished=COUNT,
        runtimeEnvYAML={"type": "string"},
        submissionMode={"enum": ["K8sJobMode", "HTTPMode", "InteractiveMode", "SidecarMode"]},
        suspend={"type": "boolean"},
        rayClusterSpec=CLUSTER,
    ),
)
ACCESS = {"enum": ["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"]}
VOLUME_CLAIM = closed(
    ["apiVersion", "kind", "metadata", "spec"],
    apiVersion={"const": "v1"},
    kind={"const": "PersistentVolumeClaim"},
    metadata=METADATA,
    spec=closed(
        ["accessModes", "resources"],
        accessModes=listed(ACCESS),
        resources=closed(["requests"], requests=AMOUNTS),
        storageClassName={"type": "string"},
    ),
)
