"use strict"
// The world's clock: all that Go knows of time comes from here, so the page can slow it down and stop it. If the browser
// gives the page no processor, the clock stands still, and no lease runs out for that.
const clock = {at: 1e6, read: performance.now(), speed: 1, begun: Date.now()}

function now() {
  const real = performance.now()
  clock.at += Math.min((real - clock.read) * clock.speed, 100)
  clock.read = real
  return clock.at
}

const elapsed = () => (now() - 1e6) / 1000 // the world's age in seconds

function setSpeed(speed) {
  now()
  clock.speed = speed
}

// keepTime gives a Go program this clock instead of the browser's.
function keepTime(go) {
  const calls = go.importObject.gojs, due = go._scheduledTimeouts
  calls["runtime.nanotime1"] = sp => go.mem.setBigInt64((sp >>> 0) + 8, BigInt(Math.round(now() * 1e6)), true)
  calls["runtime.walltime"] = sp => {
    const ms = clock.begun + now()
    go.mem.setBigInt64((sp >>> 0) + 8, BigInt(Math.floor(ms / 1000)), true)
    go.mem.setInt32((sp >>> 0) + 16, Math.floor(ms % 1000 * 1e6), true)
  }
  calls["runtime.scheduleTimeoutEvent"] = sp => {
    const id = go._nextCallbackTimeoutID++
    due.set(id, now() + Number(go.mem.getBigInt64((sp >>> 0) + 8, true)))
    go.mem.setInt32((sp >>> 0) + 16, id, true)
  }
  calls["runtime.clearTimeoutEvent"] = sp => due.delete(go.mem.getInt32((sp >>> 0) + 8, true))
  const timers = setInterval(() => {
    if (go.exited) return clearInterval(timers)
    for (const [id, at] of due) while (!go.exited && due.has(id) && at <= now()) go._resume()
  }, 4)
}
