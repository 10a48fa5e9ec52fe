const el = id => document.getElementById(id)
const order = ["anna", "boris", "clara", "dora", "emil"]
const buttons = {start: "start", kill: "kill", suspend: "suspend", wake: "wake", cut: "cut off", mend: "reconnect", slow: "slow link", fast: "fast link", close: "close"}
const most = [] // by role: the largest number of leaders ever seen
let told = 0    // time of the newest sentence

// make adds an element to another.
function make(to, tag, name, text = "") {
  const e = to.appendChild(document.createElement(tag))
  e.className = name
  e.textContent = text
  return e
}

const seconds = n => n.toFixed(1) + " s"
const colour = name => "c" + order.indexOf(name)
const token = lead => ` <small>${exclusive ? "token " + lead.Token : seconds(lead.Left) + " left"}</small>`

function tell(at, who, text, kind) {
  if (!text) return
  const li = document.createElement("li")
  li.className = `${kind} ${colour(who)}`
  make(li, "time", "", seconds(told = Math.max(told, at)))
  make(li, "span", "", text)
  el("tale").prepend(li)
  while (el("tale").children.length > 80) el("tale").lastChild.remove()
}

function build() {
  document.body.className = exclusive ? "exclusive" : "non-exclusive"
  el(document.body.className).setAttribute("aria-current", "page")
  window.onhashchange = () => location.reload()
  for (const name of order) {
    const card = make(el("members"), "article", colour(name))
    card.id = name
    make(card, "h3", "", name)
    make(card, "p", "is")
    make(make(card, "div", "lease"), "i", "")
    make(card, "p", "age")
    for (const action in buttons) {
      const b = make(card, "button", action, buttons[action])
      b.setAttribute("aria-label", `${buttons[action]}: ${name}`)
      b.onclick = () => world.press(action, name)
    }
  }
  for (let p = 0; p < (exclusive ? 1 : 3); p++) make(el("logs"), "div", "log")
  for (const b of el("speeds").children) b.onclick = () => {
    setSpeed(+b.value)
    for (const other of el("speeds").children) other.setAttribute("aria-pressed", other === b)
  }
}

function drawMember(m) {
  const awake = m.Runs && !m.Suspended && !m.Closing, card = el(m.Name), leads = Object.entries(m.Leads)
  const can = {start: !m.Runs, kill: m.Runs, suspend: awake, wake: m.Suspended, close: awake, cut: !m.Cut, mend: m.Cut, slow: !m.Slow, fast: m.Slow}
  for (const b of card.querySelectorAll("button")) b.hidden = !can[b.className]
  for (const state of ["Runs", "Suspended", "Cut"]) card.classList.toggle(state, m[state])
  const is = [!m.Runs ? "does not run" : m.Suspended ? "suspended" : m.Closing ? "closing" : leads.length ? "" : "leads nothing", m.Cut && "cut off", m.Slow && "slow link"]
  card.querySelector(".is").innerHTML = is.filter(s => s).join(", ") + leads.map(([role, lead]) => ` <span class="role">role ${role}${token(lead)}</span>`).join("")
  const led = m.Age !== null, left = led ? Math.max(0, (exclusive ? .9 : 1) * T - m.Age) : 0
  card.querySelector("i").style.width = 100 * left / T + "%"
  card.querySelector(".age").textContent = led ? `V is ${seconds(m.Age)} old: ${left ? seconds(left) + " left" : "over"}` : "\u00a0"
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

function drawRecord(at, r) {
  const said = exclusive ? JSON.parse(atob(r.Value)) : {kind: ""}, log = el("logs").children[r.Partition]
  const name = said.name ? names[said.process] = said.name : names[said.process]
  if (exclusive) tell(at, name, read[said.kind](name || "somebody", said), "record")
  const box = make(log, "span", `${said.kind} ${colour(name)}`)
  box.title = exclusive ? atob(r.Value) : "an empty record: only its receipt counts"
  make(box, "b", "", said.kind)
  make(box, "small", "", r.Offset)
  if (log.children.length > 60) log.firstChild.remove()
}

function draw() {
  if (!window.world) return
  const state = JSON.parse(world.state()), news = state.News || []
  const tellAll = some => some.forEach(n => tell(n.At, n.Member, done[n.What](n.Member, n), n.What))
  el("now").textContent = `${seconds(state.Now)} since the start`
  tellAll(news.filter(n => n.What in buttons))
  for (const r of state.Records || []) drawRecord(state.Now, r)
  tellAll(news.filter(n => !(n.What in buttons)))
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
  const drawing = setInterval(draw, 50)
  await go.run(instance)
  clearInterval(drawing)
  el("note").textContent = "The program has ended. Load the page again."
}
