"""Conan 2: conan create packaging/conan -s compiler.cppstd=20 --build=missing, from a clone. The stores are options; ZooKeeper's client
is not in Conan Center."""
import shutil
from pathlib import Path

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, rmdir
from conan.tools.gnu import PkgConfigDeps

required_conan_version = ">=2"

# What each store requires, and which of their components it links. gRPC is the newest that uses the protobuf of Debian 12, with which it is
# tested. MariaDB's client stays below 3.4, because 3.4 checks the certificate of a server also without tls=verify.
STORES = {
    "etcd": {"grpc/1.54.3": "grpc::grpc++", "protobuf/3.21.12": "protobuf::libprotobuf"},
    "mariadb": {"mariadb-connector-c/[>=3.3.3 <3.4]": "mariadb-connector-c::mariadb-connector-c"},
    "memcached": {},
    "postgres": {"libpq/[>=15.12 <16]": "libpq::libpq"},
    "redis": {"openssl/[>=3.0 <4]": "openssl::openssl"},
    "sqlite": {"sqlite3/[>=3.40 <4]": "sqlite3::sqlite3"},
}


class Holdfast(ConanFile):
    name = "holdfast"
    version = "0.1.0"
    license = "Apache-2.0"
    description = "The standard library's synchronization primitives, across processes and machines"
    package_type = "static-library"
    settings = "os", "compiler", "build_type", "arch"
    options = {store: [True, False] for store in STORES}
    default_options = {store: store in ("sqlite", "redis", "memcached") for store in STORES}
    default_options["libpq/*:with_openssl"] = True  # Conan's libpq 15 has no TLS otherwise, and sslmode=verify-full would fail

    def export_sources(self):
        root, target = Path(self.recipe_folder).parent.parent, Path(self.export_sources_folder)
        for folder in ("cmake", "include", "src"):
            copy(self, "*", root / folder, target / folder)
        for file in ("CMakeLists.txt", "LICENSE"):
            shutil.copy2(root / file, target)  # Conan's copy would walk through all of the clone, with what is built in it

    def validate(self):
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration("holdfast needs Linux")
        check_min_cppstd(self, 20)

    def stores(self):
        return [store for store in STORES if self.options.get_safe(store)]

    def requirements(self):
        for store in self.stores():
            for client in STORES[store]:
                self.requires(client)

    def build_requirements(self):
        self.tool_requires("cmake/[>=3.23 <5]")
        if self.options.etcd:
            self.tool_requires("protobuf/<host_version>")
        if self.options.mariadb or self.options.postgres:
            self.tool_requires("pkgconf/[>=2.2 <3]")

    def layout(self):
        cmake_layout(self)

    def generate(self):
        CMakeDeps(self).generate()
        PkgConfigDeps(self).generate()
        toolchain = CMakeToolchain(self)
        for store in STORES:
            toolchain.variables[f"HOLDFAST_{store.upper()}"] = "ON" if store in self.stores() else "OFF"
        toolchain.variables["HOLDFAST_ZOOKEEPER"] = "OFF"
        for part in ("TOOL", "TESTS", "BENCH", "EXAMPLES", "C"):
            toolchain.variables[f"HOLDFAST_BUILD_{part}"] = "OFF"
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        copy(self, "LICENSE", self.source_folder, Path(self.package_folder) / "licenses")
        CMake(self).install()
        # Conan makes such files for the tool that a user of the package builds with, from package_info().
        for folder in ("lib/cmake", "lib/pkgconfig", "share"):
            rmdir(self, Path(self.package_folder) / folder)

    def package_info(self):
        parts = self.cpp_info.components
        parts["core"].libs = ["holdfast-core"]
        parts["core"].system_libs = ["pthread"]
        for store in self.stores():
            parts[store].libs = [f"holdfast-{store}"]
            parts[store].requires = ["core", *STORES[store].values()]
        # open(url). The target holdfast::holdfast, of the whole package, has it and all stores.
        parts["open"].libs = ["holdfast"]
        parts["open"].requires = ["core", *self.stores()]
