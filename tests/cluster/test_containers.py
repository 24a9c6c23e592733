#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The files of cluster/containers: test_containers.py PATH_TO_quorlock [TEST...]

No image is pulled. The commands that the files name run here in their order, on real servers that are started as the
files say, and the fields that matter are checked.
"""
import os
import re
import sys
from pathlib import Path

sys.dont_write_bytecode = True  # the tree stays as it is
ROOT = Path(__file__).resolve().parents[2]
sys.path[1:1] = [str(ROOT / "tests/integration")]
sys.path.append("/usr/lib/python3/dist-packages")  # Debian's package, also for a Python that is not Debian's

import command_case
import yaml
from command_case import wait_for

FILES = ROOT / "cluster/containers"
COMPOSE = yaml.safe_load((FILES / "compose.yaml").read_text(encoding="utf-8"))
OBJECTS = {(thing["kind"], thing["metadata"]["name"]): thing
           for thing in yaml.safe_load_all((FILES / "kubernetes.yaml").read_text(encoding="utf-8"))}
VERSIONS = {"ConfigMap": "v1", "Service": "v1", "StatefulSet": "apps/v1", "Deployment": "apps/v1", "Job": "batch/v1",
            "CronJob": "batch/v1"}


def pod_of(kind, name):
    """Its template of pods; None where it has no pods."""
    spec = OBJECTS[kind, name].get("spec", {})
    return spec.get("jobTemplate", {}).get("spec", spec).get("template")


class Server(command_case.Server):
    def command_line(self):
        return super().command_line() + COMPOSE["services"]["redis1"]["command"][1:]


class Containers(command_case.Case):
    def runs_in_order(self, bootstrap, job, elect):
        for _ in range(2):
            status, _, err = self.quorlock(*bootstrap)
            self.assertEqual(status, 0, err)
        status, out, err = self.quorlock(*job)
        self.assertEqual((status, out), (0, " ".join(job[job.index("echo") + 1:]) + "\n"), err)
        name = elect[elect.index("--") - 1]
        leads = self.start(*elect)
        wait_for(lambda: self.quorlock("leader", name)[0] == 0)
        waits = self.start(*elect, stderr=None)
        leads.terminate()
        self.end(leads)
        wait_for(lambda: command_case.first_named("sleep", command_case.children(waits.pid)))

    def test_the_commands_of_compose_work_in_their_order(self):
        services = COMPOSE["services"]
        self.runs_in_order(*(services[name]["command"] for name in ("bootstrap", "job", "leader")))

    def test_the_commands_of_kubernetes_work_in_their_order(self):
        args = [pod_of(*key)["spec"]["containers"][0]["args"]
                for key in (("Job", "bootstrap"), ("CronJob", "report"), ("Deployment", "scheduler"))]
        self.runs_in_order(*args)
        # In time on another machine: the lock is still kept.
        self.assertEqual(self.quorlock(*args[1])[:2], (0, ""))

    def test_compose_names_what_there_is(self):
        services = COMPOSE["services"]
        self.assertEqual({name for name, service in services.items() if service["image"].startswith("redis:")},
                         {"redis1", "redis2", "redis3"})
        for name, service in services.items():
            self.assertLessEqual(set(service.get("depends_on", [])), set(services), name)
            if service["image"] == "quorlock":
                self.assertEqual(service["environment"]["QUORLOCK_NODES"], "redis1:6379,redis2:6379,redis3:6379")
                build = service["build"]
                self.assertTrue((FILES / build["context"] / build["dockerfile"]).is_file())

    def test_kubernetes_names_what_there_is(self):
        for (kind, name), thing in OBJECTS.items():
            self.assertEqual(thing["apiVersion"], VERSIONS[kind])
            self.assertRegex(name, r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
            pod = pod_of(kind, name)
            if pod is None:
                continue
            if kind in ("Job", "CronJob"):
                self.assertIn(pod["spec"]["restartPolicy"], ("OnFailure", "Never"))
            else:
                self.assertEqual(thing["spec"]["selector"]["matchLabels"], pod["metadata"]["labels"])
            for container in pod["spec"]["containers"]:
                self.assertTrue(container["image"] and container["name"])
                words = container.get("args", []) + container.get("command", [])
                self.assertTrue(all(isinstance(word, str) for word in words))
                for source in container.get("envFrom", []):
                    self.assertIn(("ConfigMap", source["configMapRef"]["name"]), OBJECTS)
                claims = {claim["metadata"]["name"] for claim in thing["spec"].get("volumeClaimTemplates", [])}
                self.assertLessEqual({mount["name"] for mount in container.get("volumeMounts", [])}, claims)
        servers = OBJECTS["StatefulSet", "redis"]["spec"]
        service = OBJECTS["Service", servers["serviceName"]]["spec"]
        self.assertEqual(service["selector"], servers["template"]["metadata"]["labels"])
        self.assertEqual(servers["template"]["spec"]["containers"][0]["command"],
                         COMPOSE["services"]["redis1"]["command"])
        self.assertEqual(OBJECTS["ConfigMap", "quorlock"]["data"]["QUORLOCK_NODES"], ",".join(
            f"redis-{i}.{servers['serviceName']}:{service['ports'][0]['port']}" for i in range(servers["replicas"])))

    def test_the_dockerfile_names_what_there_is(self):
        text = (FILES / "Dockerfile").read_text(encoding="utf-8")
        control = (ROOT / "scripts/debian/control").read_text(encoding="utf-8")
        for package in re.findall(r"/packages/([\w-]+)_", text):
            self.assertIn(f"\nPackage: {package}\n", control)
        for script in re.findall(r"/source/(scripts/\w+)", text):
            self.assertTrue(os.access(ROOT / script, os.X_OK))


if __name__ == "__main__":
    command_case.main(Server)
