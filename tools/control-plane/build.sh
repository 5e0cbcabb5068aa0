#!/usr/bin/env bash
# Builds a Kubernetes control plane (and kubectl) from the module beside this file, once.
#
# The binaries go to $MOORING_CONTROL_PLANE, or to mooring/control-plane/<version> in the user's
# cache folder; those that are there, or in $KUBEBUILDER_ASSETS, are not built again.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

version=$(sed -n 's|^.*k8s.io/kubernetes \(v[0-9.]*\).*$|\1|p' go.mod)
go_version=$(sed -n 's/^go //p' go.mod)
cache=${MOORING_CONTROL_PLANE:-${XDG_CACHE_HOME:-$HOME/.cache}/mooring/control-plane/$version}

declare -A packages=(
    [etcd]=go.etcd.io/etcd/server/v3
    [kube-apiserver]=k8s.io/kubernetes/cmd/kube-apiserver
    [kube-controller-manager]=k8s.io/kubernetes/cmd/kube-controller-manager
    [kube-scheduler]=k8s.io/kubernetes/cmd/kube-scheduler
    [kubectl]=k8s.io/kubernetes/cmd/kubectl
)

missing=()
for binary in etcd kube-apiserver kube-controller-manager kube-scheduler kubectl; do
    [[ -x ${KUBEBUILDER_ASSETS:-}/$binary || -x $cache/$binary ]] || missing+=("$binary")
done
if ((${#missing[@]} == 0)); then
    exit 0
fi

if ! command -v go >/dev/null; then
    cat >&2 <<END
To build ${missing[*]} $version, Go $go_version or later is needed, and there is no 'go' on the PATH.
Install Go, or name a folder that has these binaries: KUBEBUILDER_ASSETS=<folder> make control-plane
END
    exit 1
fi

# Without a stamp they would call themselves v0.0.0-master. A component names its version in its
# requests (client-go) as well as when asked (component-base).
IFS=. read -r major minor _ <<<"${version#v}"
stamp=
for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
    stamp+=" -X $package.gitVersion=$version -X $package.gitMajor=$major -X $package.gitMinor=$minor"
done

echo "building ${missing[*]} $version into $cache: about ten minutes on two cores, once"
mkdir -p "$cache"
for binary in "${missing[@]}"; do
    # Without cgo no C compiler is needed. An interrupted build leaves nothing that looks finished.
    CGO_ENABLED=0 go build -trimpath -ldflags "-s -w$stamp" \
        -o "$cache/.$binary.unfinished" "${packages[$binary]}"
    mv "$cache/.$binary.unfinished" "$cache/$binary"
    echo "built $binary"
done
