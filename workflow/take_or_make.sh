# take_or_make.sh RECORD COMMAND .. --output PATH ..: the record, moved to PATH; where there is none,
# what the command makes.
record=$1
shift
if [ -e "$record" ]; then
    for word; do
        [ "$option" = --output ] && exec mv "$record" "$word"
        option=$word
    done
fi
exec "$@"
