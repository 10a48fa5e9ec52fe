const el = id => document.getElementById(id)
const order = ["anna", "boris", "clara", "dora", "emil"]
const buttons = {start: "start", kill: "kill", suspend: "suspend", wake: "wake", cut: "cut off", mend: "reconnect", slow: "slow link", fast: "fast link", close: "close"}
const most = []   // by role: the largest number of leaders ever seen
const newest = {} // by member: its newest V
let state         // as it was last drawn

const seconds = n => n.toFixed(1) + " s"
const colour = name => "c" + order.indexOf(name)
const token = lead => ` <small>${exclusive ? "token " + lead.Token : seconds(lead.Left) + " left"}</small>`

// make adds an element to another.
function make(to, tag, name, text = "") {
  const e = to.appendChild(document.createElement(tag))
  e.className = name
  e.textContent = text
  return e
}

function tell(who, text, kind) {
  if (!text) return
  const li = make(el("tale"), "li", `${kind} ${colour(who)}`)
  make(li, "time", "", seconds(elapsed()))
  make(li, "span", "", text)
  el("tale").prepend(li)
  if (el("tale").children.length > 80) el("tale").lastChild.remove()
}

function build() {
  document.body.className = exclusive ? "exclusive" : "non-exclusive"
  el(document.body.className).setAttribute("aria-current", "page")
  window.onhashchange = () => location.reload()
  el("members").innerHTML = order.map(name => `<article id="${name}" class="${colour(name)}"><h3>${name}</h3><p class="is"></p>
    <div class="lease"><i></i></div><p class="age"></p>${Object.entries(buttons).map(([action, says]) =>
    `<button class="${action}" aria-label="${says}: ${name}">${says}</button>`).join("")}</article>`).join("")
  for (const b of document.querySelectorAll("article button")) b.onclick = () => press(b.className, b.parentNode.id)
  for (let p = 0; p < (exclusive ? 1 : 3); p++) make(el("logs"), "div", "log")
  for (const b of el("speeds").children) b.onclick = () => {
    setSpeed(+b.value)
    for (const other of el("speeds").children) other.setAttribute("aria-pressed", other === b)
  }
}

// press does what a button says, and tells it.
function press(action, name) {
  if (!world.press(action, order.indexOf(name))) return
  draw()
  tell(name, done[action](name, state.Members[order.indexOf(name)]), action)
}

function drawMember(m) {
  const awake = m.Runs && !m.Suspended && !m.Closing, card = el(m.Name), leads = Object.entries(m.Leads), lasts = (exclusive ? .9 : 1) * T
  const can = {start: !m.Runs, kill: m.Runs, suspend: awake, wake: m.Suspended, close: awake, cut: !m.Cut, mend: m.Cut, slow: !m.Slow, fast: m.Slow}
  for (const b of card.querySelectorAll("button")) b.hidden = !can[b.className]
  card.classList.toggle("Suspended", m.Suspended)
  const is = [!m.Runs ? "does not run" : m.Suspended ? "suspended" : m.Closing ? "closing" : leads.length ? "" : "leads nothing", m.Cut && "cut off", m.Slow && "slow link"]
  card.querySelector(".is").innerHTML = is.filter(s => s).join(", ") + leads.map(([role, lead]) => ` <span class="role">role ${role}${token(lead)}</span>`).join("")
  if (!m.Runs) delete newest[m.Name]
  for (const [, {Left}] of leads) if (Left > 0) newest[m.Name] = Math.max(newest[m.Name] || 0, elapsed() + Left - lasts)
  const age = elapsed() - newest[m.Name], left = Math.max(0, lasts - age) || 0 // NaN: it has led nothing
  card.querySelector("i").style.width = 100 * left / T + "%"
  card.querySelector(".age").textContent = age >= 0 ? `V is ${seconds(age)} old: ${left ? seconds(left) + " left" : "over"}` : "\u00a0"
}

function drawRoles({Members, Standings}) {
  el("roles").innerHTML = Array.from({length: exclusive ? 4 : 3}, (_, role) => {
    const by = Members.filter(m => role in m.Leads), assigned = Members.filter(m => m.Assigned?.includes(role)).map(m => m.Name)
    most[role] = Math.max(most[role] || 0, by.length)
    const s = Standings?.find(s => numbers(s.roles).includes(role))
    const log = !exclusive ? `the group has assigned it to ${assigned.join(", ") || "nobody"}`
      : "in the log: " + (s?.holder ? `${s.holder.name}, heard ${seconds(s.holder.age)} ago` : s?.status || "unknown")
    const tags = by.map(m => `<b class="tag ${colour(m.Name)}">${m.Name}${token(m.Leads[role])}</b>`)
    return `<div class="${by.length ? "" : "none"}"><h3>role ${role}</h3>${tags.join("") || "<b>nobody</b>"}<p>${log}</p></div>`
  }).join("")
}

function drawRecord(r) {
  const said = exclusive ? JSON.parse(atob(r.Value)) : {kind: ""}, log = el("logs").children[r.Partition]
  const name = said.name ? names[said.process] = said.name : names[said.process]
  if (exclusive) tell(name, read[said.kind](name || "somebody", said), "record")
  const box = make(log, "span", `${said.kind} ${colour(name)}`)
  box.title = exclusive ? atob(r.Value) : "an empty record: only its receipt counts"
  make(box, "b", "", said.kind)
  make(box, "small", "", r.Offset)
  if (log.children.length > 60) log.firstChild.remove()
}

function draw() {
  state = JSON.parse(world.state())
  state.Records?.forEach(drawRecord)
  for (const {Member, What, Event} of state.News || []) {
    const what = Event ? What.split(" ")[1] : "closed"
    for (const t of Event?.Terms || [{}]) tell(Member, done[what](Member, {What, ...Event, ...t}), what)
  }
  el("now").textContent = `${seconds(elapsed())} since the start`
  state.Members.forEach(drawMember)
  drawRoles(state)
}

async function begin() {
  build()
  el("speeds").children[2].click()
  const packed = Uint8Array.from(atob(el("program").textContent), c => c.charCodeAt(0))
  const program = await new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer()
  const go = new Go()
  go.argv = ["world", document.body.className]
  keepTime(go)
  const {instance} = await WebAssembly.instantiate(program, go.importObject)
  const drawing = setInterval(() => {
    if (!window.world) return // not yet
    if (!state) for (const name of order.slice(0, 3)) press("start", name)
    draw()
  }, 50)
  await go.run(instance)
  clearInterval(drawing)
  el("note").textContent = "The program has ended. Load the page again."
}
