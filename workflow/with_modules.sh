# with_modules.sh 'MODULE MODULE ..' COMMAND ..: the command, with these environment modules loaded
# and no others. One that cannot be loaded is for the harness to find, which leaves a record of it.
read -ra names <<<"$1"
shift
# A shell that is not interactive need not know the command.
for file in "${LMOD_PKG:-}/init/bash" "${MODULESHOME:-}/init/bash" \
    /etc/profile.d/{modules,lmod,z00_lmod}.sh /usr/share/{modules,lmod/lmod}/init/bash; do
    type module >/dev/null 2>&1 && break
    [ -r "$file" ] && . "$file"
done
module purge
# One by one: those before one that is missing are loaded by every kind of `module`.
for name in "${names[@]}"; do module load "$name"; done
exec "$@"
