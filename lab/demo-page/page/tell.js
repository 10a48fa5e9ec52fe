// What happened, in a sentence or two each.
const exclusive = location.hash !== "#non-exclusive", T = exclusive ? 4 : 10
const names = {}    // of processes, by their ids
const released = {} // by role: the token of the newest Release
const former = {}   // by role: who was told last that it leads, with the token
const met = new Set()

const list = roles => roles.length < 2 ? "role " + roles[0] : "roles " + roles.slice(0, -1).join(", ") + " and " + roles.at(-1)

// first returns a text only the first time.
const first = text => met.has(text) ? "" : (met.add(text), text)

// numbers reads the library's ranges: 0-2,5.
const numbers = text => text.split(",").flatMap(s => {
  const [from, to = from] = s.split("-").map(Number)
  return Array.from({length: to - from + 1}, (_, i) => from + i)
})

const done = Object.assign({
  wake: (n, m) => Object.keys(m.Leads).length ? `${n} wakes in time: V is still young enough, and its terms go on.`
    : `${n} wakes, and the first look at its clock says that it leads nothing, whatever it believed when it was suspended.`,
  mend: n => `${n} reaches the log again, and reads what it has missed.`,
  fast: n => `${n}’s link is fast again.`,
  closed: (n, e) => `${n} has ended. ${e.What}`,
}, exclusive ? {
  start: n => `${n} starts. It does not know yet who holds which role, and claims nothing before it does.`,
  kill: n => `${n} is killed. It can tell nobody: its leases last until the others have read nothing of it for T = ${T} s.`,
  close: n => `${n} is closed. It ends its work and hands each role to a successor: nobody has to wait for T.`,
  suspend: n => `${n} is suspended (SIGSTOP) at some line of its program. It does not know that, and clocks run on.`,
  cut: n => `${n} is cut off. It reads nothing, so V grows old, and its own clock ends its leases before anybody else may lead.`,
  slow: n => `${n}’s link becomes slow. V is the time when a beat was sent, so it is old already when the beat comes back.`,
  acquired: (n, e) => {
    const why = new Set(e.Roles.map(role => {
      const of = former[role]
      former[role] = {name: n, token: e.Token}
      return !of ? "without a holder so far" : released[role] === of.token ? `released by ${of.name}` : `nothing was read of ${of.name} for T`
    }))
    return `${n} leads ${list(e.Roles)}: ${[...why].join(", ")}. The claim is record ${e.Token}, so ${e.Token} is the token.`
  },
  revoked: (n, e) => `${n} gives up ${list(e.Roles)} (${e.Reason}): it ends its work first, then releases.`,
  fenced: (n, e) => `${n} stops leading ${list(e.Roles)} by its own clock (${e.Reason}): V is 0.9 T old. Nobody has to tell it.`,
} : {
  start: n => `${n} starts and joins the group, which shares its partitions out anew.`,
  kill: n => `${n} is killed. Nobody leads its roles until the group notices (its session lasts 4 s) and assigns them to others.`,
  close: n => `${n} is closed. It leaves the group at once, and leads on until a successor has surely begun: for a while there are two.`,
  suspend: n => `${n} is suspended (SIGSTOP). After 4 s the group gives its partition to another. If it wakes soon after that, both lead.`,
  cut: n => `${n} is cut off. It leads on until V is T = ${T} s old. After 4 s the group gives its partition to another, so somebody always leads.`,
  slow: n => `${n}’s link becomes slow. Here V is the time of receipt, so it stays young.`,
  acquired: (n, e) => `${n} leads ${list(e.Roles)}: the group has assigned the partition to it, and a record has arrived there.`,
  revoked: (n, e) => `${n} leads ${list(e.Roles)} no more (${e.Reason}): its successor leads by now.`,
  fenced: (n, e) => `${n} stops leading ${list(e.Roles)} by its own clock (${e.Reason}): V is T old. Nobody has to tell it.`,
})

// read returns what a record tells a person.
const read = {
  beat: n => first("A beat renews all roles of its sender. It leads while its newest beat that has come back is younger than 0.9 T."),
  hello: (n, r) => r.hello.leaving ? `${n} says that it is leaving, so that nobody chooses it as a successor.`
    : first(`${n} says Hello: it is there, and wants a share of the roles.`),
  claim: (n, r) => `${n} claims ${list(numbers(r.roles))}${r.fresh ? " without knowing who holds what, after a wait that outlasts every lease." : "."}`
    + first(" Of several claims the first in the log counts."),
  release: (n, r) => {
    for (const g of r.ended) for (const role of numbers(g.roles)) released[role] = g.token
    return `${n} releases ${list(r.ended.flatMap(g => numbers(g.roles)))}${r.to ? ` in favour of ${names[r.to]}, which claims next.` : ": whoever is due may claim at once."}`
  },
  snapshot: n => `${n} writes a Snapshot of who holds what` + (first(": a newcomer that reads it knows the holders at once.") || "."),
  ping: (n, r) => names[r.to] ? `${n} asks ${names[r.to]} whether it can lead` + (first(". Without an answer it gives nothing up.") || ".") : "",
  pong: n => `${n} answers.`,
}
