# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of TLS share: certificates, made by the openssl command in the test's folder, and redis-servers that
use them. A server has a port for TLS, for the command, and one without, by which the test looks at it."""
import os
import subprocess
import time

import command_case
import redis_server

CONFIG = """[ca]
default_ca = here
[here]
dir = %s
database = $dir/index
new_certs_dir = $dir
default_md = sha256
policy = any
rand_serial = yes
unique_subject = no
[any]
commonName = supplied
[req]
distinguished_name = none
[none]
"""


def openssl(*words):
    result = subprocess.run(["openssl", *words], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if result.returncode != 0:
        raise AssertionError(f"openssl {words}: {result.stderr.decode()}")


def date(from_now_s):
    return time.strftime("%Y%m%d%H%M%SZ", time.gmtime(time.time() + from_now_s))


class Certificate:
    """One with its key, as files; signed by the issuer, or by itself. `names` as in a configuration of OpenSSL."""

    made = 0

    def __init__(self, folder, issuer=None, names=None, begins_s=-3600, ends_s=86400, is_ca=False, name=None):
        Certificate.made += 1
        self.issuer, place = issuer, os.path.join(folder, f"certificate-{Certificate.made}")
        os.mkdir(place)
        self.path, self.key = os.path.join(place, "cert.pem"), os.path.join(place, "key.pem")
        config, request, extensions = (os.path.join(place, name) for name in ("config", "request", "extensions"))
        for path, text in [(config, CONFIG % place), (os.path.join(place, "index"), ""),
                           (extensions, f"basicConstraints = CA:{'TRUE' if is_ca else 'FALSE'}\n" +
                            (f"subjectAltName = {names}\n" if names else ""))]:
            with open(path, "w", encoding="ascii") as f:
                f.write(text)
        openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-config", config,
                "-subj", f"/CN={name or f'number {Certificate.made}'}", "-keyout", self.key, "-out", request)
        signer = ["-cert", issuer.path, "-keyfile", issuer.key] if issuer else ["-selfsign", "-keyfile", self.key]
        openssl("ca", "-batch", "-notext", "-config", config, "-in", request, "-out", self.path, "-extfile", extensions,
                "-startdate", date(begins_s), "-enddate", date(ends_s), *signer)

    def text(self):
        with open(self.path, encoding="ascii") as f:
            return f.read()

    def with_others(self, *others):
        """A file with this certificate and then those."""
        path = f"{self.path}.{'-'.join(os.path.basename(os.path.dirname(other.path)) for other in others)}"
        with open(path, "w", encoding="ascii") as f:
            f.write("".join(certificate.text() for certificate in (self, *others)))
        return path


class TlsServer(command_case.Server):
    """A redis-server with a port for TLS. All of them have the same CA, and the same good certificate."""

    ca = good = None

    def __init__(self, folder, number):
        if TlsServer.ca is None:
            TlsServer.ca = Certificate(folder, is_ca=True)
            TlsServer.good = Certificate(folder, TlsServer.ca, "IP:127.0.0.1, DNS:localhost")
        self.tls_kept = redis_server.keep_port()
        self.tls_port = self.tls_kept.getsockname()[1]
        super().__init__(folder, number, "--tls-port", self.tls_port, "--tls-auth-clients", "no", "--tls-cert-file",
                         self.good.path, "--tls-key-file", self.good.key, "--tls-ca-cert-file", self.ca.path)

    def show(self, certificate, path=None):
        """The certificate that it shows from now on; path: the file, where it holds more."""
        self.ask("CONFIG", "SET", "tls-cert-file", path or certificate.path, "tls-key-file", certificate.key)

    def drop_clients(self):
        """Ends all connections, so that the clients come anew."""
        self.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        self.ask("CLIENT", "KILL", "TYPE", "pubsub")

    def clients(self):
        """Connections over TLS: all but that which asks."""
        return self.ask("CLIENT", "LIST", "TYPE", "normal").decode().count("\n") - 1

    def __str__(self):
        return f"rediss://127.0.0.1:{self.tls_port}"
