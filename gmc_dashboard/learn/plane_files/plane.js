// Ratings of two movies on a plane, to be moved by mouse, touch and keys.
//
// The server gives `data` (gmc_dashboard/learn/plane.py says what is in it). What is moved is drawn
// here at once and told to the server, one message at a time; the next waits for the answer to
// the former, so that a slow machine is never flooded. Until the answer has come, what was moved
// stays where it was put.

const CLICK = 4           // px that a pointer may tremble and still click
const PATIENCE = 10000    // ms without an answer, after which it is told again
const STEP = .1           // of the arrow keys, in ratings
const TURN = Math.PI / 36 // of the arrow keys, of an axis
const planes = new WeakMap()

export default function ({data, parentElement, setTriggerValue}) {
  if (!planes.has(parentElement)) planes.set(parentElement, new Plane(parentElement, data))
  const plane = planes.get(parentElement)
  plane.send = change => setTriggerValue('moved', change)
  plane.take(data)
  return () => plane.end()
}

class Plane extends Drawing {
  constructor(parent, data) {
    super(parent)
    this.changes = []       // told or to be told, without an answer yet
    this.number = data.seen // of the last change
    this.svg.addEventListener('pointerdown', event => this.press(event))
    // A finger on what can be moved moves it; beside it, the page.
    this.svg.addEventListener('touchstart', event => {
      if (!this.data.fixed && event.target.closest('[data-user], [data-grip]'))
        event.preventDefault()
    }, {passive: false})
    this.resized = new ResizeObserver(() => this.draw())
    this.resized.observe(parent)
  }

  end() {
    this.resized.disconnect()
    clearTimeout(this.late)
  }

  // What the server says -------------------------------------------------------------------

  take(data) {
    this.data = data
    this.changes = this.changes.filter(change => change.number > data.seen)
    if (!this.changes.some(change => change.told)) this.next()
    this.glide()
    this.draw()
  }

  // Another place of the same thing takes the place of one that has not been told yet.
  change(what) {
    this.number += 1
    const last = this.changes.at(-1)
    if (last && !last.told && last.what === what.what && last.id === what.id) this.changes.pop()
    this.changes.push({...what, number: this.number})
    this.glide()
    this.draw()
    if (!this.changes.some(change => change.told)) this.next()
  }

  // Dots glide to where a new picture has them, but not to where somebody puts them.
  glide() {
    this.root.classList.toggle('still', this.changes.length > 0 || this.drag !== undefined)
  }

  next() {
    clearTimeout(this.late)
    const waiting = this.changes.find(change => !change.told)
    if (!waiting) return
    waiting.told = true
    const {told, ...message} = waiting
    this.send(message)
    this.late = setTimeout(() => this.again(), PATIENCE)
  }

  // To say the same twice changes nothing.
  again() {
    for (const change of this.changes) change.told = false
    this.next()
  }

  // Pointers -------------------------------------------------------------------------------

  press(event) {
    if (event.button !== 0 || this.data.fixed || this.drag) return
    const user = event.target.closest('[data-user]'), grip = event.target.closest('[data-grip]')
    const at = this.at(event)
    if (!user && !grip && !this.inside(at)) return
    const id = user ? Number(user.dataset.user) : null
    const start = this.shown
    const drag = {pointer: event.pointerId, x: event.clientX, y: event.clientY, start, moved: false}
    if (user) {
      const before = start.users.find(one => one.id === id).at
      drag.move = point => this.moveUser(id, [0, 1].map(k => before[k] + point[k] - at[k]))
      drag.click = () => this.change({what: 'taken', id})
    } else if (grip) {
      drag.move = point => this.moveGrip(grip.dataset.grip, point, start)
    } else {
      drag.click = () => this.addUser(at)
    }
    this.drag = drag
    this.glide()
    if (user || grip) {
      event.preventDefault()  // no text is selected, and a finger does not scroll
      const focused = grip ? this.grips.get(grip.dataset.grip) : user
      focused?.focus({preventScroll: true})
      this.svg.setPointerCapture(event.pointerId)
    }
    this.follow()
  }

  follow() {
    const {drag} = this
    const move = event => {
      if (event.pointerId !== drag.pointer) return
      drag.moved ||= Math.hypot(event.clientX - drag.x, event.clientY - drag.y) > CLICK
      if (drag.moved) drag.move?.(this.at(event))
    }
    const stop = event => {
      if (event.pointerId !== drag.pointer) return
      for (const kind of ['pointermove', 'pointerup', 'pointercancel'])
        window.removeEventListener(kind, kind === 'pointermove' ? move : stop)
      this.drag = undefined
      if (event.type === 'pointerup' && !drag.moved) drag.click?.()
      this.glide()
    }
    window.addEventListener('pointermove', move)
    window.addEventListener('pointerup', stop)
    window.addEventListener('pointercancel', stop)
  }

  inside(at) {
    return at.every(value => value === within(value, this.data.range))
  }

  // Moves, in ratings ----------------------------------------------------------------------

  moveUser(id, at) {
    const [low, high] = this.data.range
    this.change({what: 'user', id, at: at.map(value => rounded(within(value, [low, high]), .01))})
  }

  addUser(at) {
    const id = Math.max(this.data.next, ...this.shown.users.map(user => user.id + 1))
    this.current = id
    this.moveUser(id, at)
  }

  moveGrip(name, point, start) {
    const {line, handles} = this.data
    if (name === 'rating') {
      this.setRating(within(point[line.movie], [line.low, line.high]))
      return
    }
    const {mean, cov} = start.ellipse
    if (name === 'middle') {
      this.setEllipse(point.map(value => within(value, handles.mean)), cov)
      return
    }
    const index = Number(name.at(-1)), pair = axes(cov)
    const away = [point[0] - mean[0], point[1] - mean[1]]
    const sd = within(Math.hypot(...away) / this.data.rings[0].radius, handles.axis)
    this.setEllipse(mean, covariance(sd, Math.atan2(away[1], away[0]), pair[1 - index].sd))
  }

  setRating(value) {
    const {step} = this.data.line
    this.change({what: 'rating', rating: Number(rounded(value, step).toFixed(4))})
  }

  setEllipse(mean, cov) {
    this.change({what: 'ellipse', mean, cov})
  }

  // Keys -----------------------------------------------------------------------------------

  keyOfUser(event, id) {
    const way = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1]}
    const {at} = this.shown.users.find(user => user.id === id)
    if (event.key in way) this.moveUser(id, at.map((value, k) => value + STEP * way[event.key][k]))
    else if (['Delete', 'Backspace'].includes(event.key)) this.change({what: 'taken', id})
    else if (event.key === 'Insert' || event.key === '+') this.addUser([at[0] + 3 * STEP, at[1]])
    else if (event.key === 'PageDown') this.focusUser(id, 1)
    else if (event.key === 'PageUp') this.focusUser(id, -1)
    else return
    event.preventDefault()
    event.stopPropagation()
  }

  focusUser(id, by) {
    const ids = [...this.users.keys()].sort((one, other) => one - other)
    const next = ids[(ids.indexOf(id) + by + ids.length) % ids.length]
    this.users.get(next).focus()
  }

  keyOfGrip(event, name) {
    const right = {ArrowRight: 1, ArrowLeft: -1}[event.key] ?? 0
    const up = {ArrowUp: 1, ArrowDown: -1}[event.key] ?? 0
    if (!right && !up) return
    event.preventDefault()
    event.stopPropagation()
    const {ellipse, line} = this.shown, {handles} = this.data
    if (name === 'rating') {
      this.setRating(within(line.rating + (right + up) * line.step, [line.low, line.high]))
    } else if (name === 'middle') {
      const moved = [ellipse.mean[0] + STEP * right, ellipse.mean[1] + STEP * up]
      this.setEllipse(moved.map(value => within(value, handles.mean)), ellipse.cov)
    } else {
      const index = Number(name.at(-1)), pair = axes(ellipse.cov), {sd, angle} = pair[index]
      const length = within(sd + STEP / 2 * up, handles.axis)
      this.setEllipse(ellipse.mean, covariance(length, angle - TURN * right, pair[1 - index].sd))
    }
  }
}
