// The picture: grid, ellipse, line with its bells, users, handles, legend. A `Drawing` draws what
// it is given; plane.js moves it. Elements stay from drawing to drawing, so that focus stays too.

const SVG = 'http://www.w3.org/2000/svg'
const BELL = 1.1          // a bell's height, in ratings for a density of 1
const TALLEST = 1.7       // of a bell, in ratings

function make(name, attributes, parent) {
  const element = document.createElementNS(SVG, name)
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value)
  parent?.append(element)
  return element
}

function set(element, attributes) {
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value)
}

const within = (value, [low, high]) => Math.min(Math.max(value, low), high)
const rounded = (value, step) => Math.round(value / step) * step
const said = value => value.toFixed(2)

// Shapes of users around (0, 0), as in the legend.
const SHAPES = {
  both: 'M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0Z',
  a: 'M0-5L5 0L0 5L-5 0Z',
  b: 'M-4-4H4V4H-4Z',
}

class Drawing {
  static count = 0

  constructor(parent) {
    this.root = document.createElement('div')
    this.root.className = 'gmc-plane'
    this.svg = make('svg', {role: 'group'}, this.root)
    this.side = document.createElement('div')
    this.side.className = 'gmc-plane-side'
    this.root.append(this.side)
    parent.append(this.root)
    this.layers = {}
    // What leaves the field ends at its edge; handles are never hidden.
    const edge = make('clipPath', {id: `gmc-plane-${++Drawing.count}`}, this.svg)
    this.field = make('rect', {}, edge)
    const layer = (name, parent) => { this.layers[name] = make('g', {class: name}, parent) }
    for (const name of ['grid', 'rug']) layer(name, this.svg)
    const inside = make('g', {'clip-path': `url(#${edge.id})`}, this.svg)
    for (const name of ['shape', 'line', 'users', 'fill']) layer(name, inside)
    layer('grips', this.svg)
    this.users = new Map()  // id to element
    this.grips = new Map()  // name to element
    this.current = null     // id of the user whom the arrow keys move
  }

  // Places ---------------------------------------------------------------------------------

  measure() {
    const {size, font, side} = this.data
    const wide = this.root.clientWidth || size
    this.size = Math.max(Math.min(size, wide), 120)
    this.left = 2.6 * font
    this.bottom = 3 * font
    this.span = Math.min(this.size - this.left - 6, this.size - this.bottom - 6)
    this.root.classList.toggle('narrow', wide < this.size + (side?.room ?? 0))
  }

  px([x, y]) {
    const [low, high] = this.data.range, unit = this.span / (high - low)
    return [this.left + (x - low) * unit, 6 + this.span - (y - low) * unit]
  }

  at(event) {
    const box = this.svg.getBoundingClientRect(), [low, high] = this.data.range
    const unit = this.span / (high - low)
    return [
      low + (event.clientX - box.left - this.left) / unit,
      low + (6 + this.span - (event.clientY - box.top)) / unit,
    ]
  }

  // Drawing --------------------------------------------------------------------------------

  draw() {
    if (!this.data) return
    const shown = this.changes.reduce(applied, this.data)
    this.shown = shown
    this.measure()
    this.paint()
    this.root.style.setProperty('--font', `${shown.font}px`)
    set(this.svg, {width: this.size, height: this.size, 'aria-label': shown.alt})
    this.drawGrid(shown)
    this.drawShape(shown)
    this.drawLine(shown)
    this.drawUsers(shown)
    this.drawGrips(shown)
    this.drawSide(shown)
  }

  // The theme's colours for charts come as a list, which style sheets cannot take apart. They are
  // those of gmc_dashboard/shared/theme.py, and change with the theme at once.
  paint() {
    const style = getComputedStyle(this.root)
    const colours = style.getPropertyValue('--st-chart-categorical-colors').split(',')
    const places = {accent: 0, contrast: 1, first: 2, second: 3, muted: 6}
    for (const [name, place] of Object.entries(places))
      this.root.style.setProperty(`--${name}`, colours[place])
  }

  drawGrid({range, ticks, names, font}) {
    const key = JSON.stringify([this.size, range, ticks, names, font])
    if (this.grid === key) return
    this.grid = key
    const layer = this.layers.grid
    layer.replaceChildren()
    const [low, high] = range
    const field = {x: this.left, y: 6, width: this.span, height: this.span}
    make('rect', {class: 'field', ...field}, layer)
    set(this.field, field)
    const label = (text, x, y, more) => {
      make('text', {x, y, ...more}, layer).textContent = text
    }
    for (const tick of ticks) {
      const [x, y] = this.px([tick, tick]), [left, bottom] = this.px([low, low])
      const [right, top] = this.px([high, high])
      make('path', {class: 'rule', d: `M${x} ${top}V${bottom}M${left} ${y}H${right}`}, layer)
      label(tick, x, bottom + 1.2 * font, {'text-anchor': 'middle'})
      label(tick, left - .5 * font, y + .35 * font, {'text-anchor': 'end'})
    }
    const [middleX, middleY] = this.px([(low + high) / 2, (low + high) / 2])
    label(names[0], middleX, this.size - .5 * font, {'text-anchor': 'middle'})
    const turn = `rotate(-90 ${font} ${middleY})`
    label(names[1], font, middleY, {'text-anchor': 'middle', transform: turn})
  }

  outline({mean, cov}, radius) {
    const [rising, falling] = axes(cov), points = []
    const cos = Math.cos(rising.angle), sin = Math.sin(rising.angle)
    for (let k = 0; k < 120; k++) {
      const along = radius * rising.sd * Math.cos(k * Math.PI / 60)
      const across = radius * falling.sd * Math.sin(k * Math.PI / 60)
      const x = along * cos + across * sin, y = along * sin - across * cos
      points.push(this.px([mean[0] + x, mean[1] + y]))
    }
    return `M${points.map(point => point.map(said).join(' ')).join('L')}Z`
  }

  drawShape({ellipse, rings, truth, rug}) {
    const layer = this.layers.shape
    layer.replaceChildren()
    if (ellipse)
      for (const {radius, look} of rings)
        make('path', {class: `ring ${look}`, d: this.outline(ellipse, radius)}, layer)
    if (truth) make('path', {class: 'ring truth', d: this.outline(truth, truth.radius)}, layer)
    this.layers.rug.replaceChildren()
    const [left, bottom] = this.px([this.data.range[0], this.data.range[0]])
    for (const {movie, rating} of rug) {
      if (within(rating, this.data.range) !== rating) continue  // beyond the margin itself
      const [x, y] = this.px([rating, rating])
      const d = movie === 0 ? `M${x} ${bottom - 3}v-12` : `M${left + 3} ${y}h12`
      make('path', {class: movie === 0 ? 'rug a' : 'rug b', d}, this.layers.rug)
    }
  }

  // A point of the line's picture, from what the user rated and the other movie's value.
  on(movie, own, other) {
    return this.px(movie === 0 ? [own, other] : [other, own])
  }

  bell(movie, rating, {mean, sd}) {
    const [low, high] = this.data.range, points = [], width = Math.max(sd, .02)
    const scale = Math.min(BELL / (width * Math.sqrt(2 * Math.PI)), TALLEST)
    for (let k = 0; k <= 80; k++) {
      const value = within(mean + (k / 80 - .5) * 7 * width, [low, high])
      const height = scale * Math.exp(-.5 * ((value - mean) / width) ** 2)
      points.push(this.on(movie, within(rating + height, [low, high]), value))
    }
    return `M${points.map(point => point.map(said).join(' ')).join('L')}`
  }

  drawLine({line, ellipse, noise, range}) {
    const {line: layer, fill} = this.layers
    if (!line || !ellipse) {
      layer.replaceChildren()
      fill.replaceChildren()
      return
    }
    if (!layer.childNodes.length) {
      for (const name of ['guesses', 'prior', 'posterior', 'hit', 'rating'])
        make('path', {class: name}, layer)
      make('path', {class: 'interval'}, fill)
      make('path', {class: 'diamond', d: 'M0-8L8 0L0 8L-8 0Z'}, fill)
    }
    const {movie, rating} = line, other = 1 - movie, [low, high] = range
    const belief = conditional(ellipse, noise, movie, rating)
    const before = {mean: ellipse.mean[other], sd: Math.sqrt(ellipse.cov[other][other])}
    const guess = value => this.on(movie, value, conditional(ellipse, noise, movie, value).mean)
    const path = (from, to) => `M${from.join(' ')}L${to.join(' ')}`
    const [guesses, prior, posterior, hit, own] = layer.children
    set(guesses, {d: path(guess(low), guess(high))})
    set(prior, {d: this.bell(movie, rating, before)})
    set(posterior, {d: this.bell(movie, rating, belief)})
    const along = path(this.on(movie, rating, low), this.on(movie, rating, high))
    set(own, {d: along})
    set(hit, {d: along})
    hit.dataset.grip = 'rating'
    const [low95, high95] = [-1.96, 1.96].map(z => within(belief.mean + z * belief.sd, range))
    set(fill.children[0], {d: path(this.on(movie, rating, low95), this.on(movie, rating, high95))})
    const place = this.on(movie, rating, within(belief.mean, range))
    set(fill.children[1], {transform: `translate(${place.join(' ')})`})
    Object.assign(this.root.dataset, {mean: belief.mean.toFixed(4), sd: belief.sd.toFixed(4)})
  }

  drawUsers({users, names, fixed}) {
    const layer = this.layers.users, [a, b] = names
    for (const [id, element] of this.users)
      if (!users.some(user => user.id === id)) {
        // The place of one who is taken away goes to the next, so that keys lead on.
        if (document.activeElement === element) this.layers.users.querySelector('g')?.focus()
        element.remove()
        this.users.delete(id)
      }
    if (!users.some(user => user.id === this.current)) this.current = users[0]?.id ?? null
    for (const {id, kind, at} of users) {
      if (!this.users.has(id)) this.users.set(id, this.newUser(id))
      const element = this.users.get(id)
      const [mark, hit] = [element.children[1], element.children[0]]
      const words = `${a} ${said(at[0])}, ${b} ${said(at[1])}`
      element.style.transform = `translate(${this.px(at).map(v => `${v}px`).join(',')})`
      set(element, {
        class: `user ${kind}`, tabindex: !fixed && id === this.current ? 0 : -1,
        'aria-label': `User ${id + 1}`, 'aria-valuenow': said(at[kind === 'b' ? 1 : 0]),
        'aria-valuetext': words, 'aria-valuemin': this.data.range[0],
        'aria-valuemax': this.data.range[1],
      })
      set(mark, {d: SHAPES[kind]})
      hit.firstChild.textContent = words
    }
    layer.toggleAttribute('data-fixed', Boolean(fixed))
  }

  newUser(id) {
    const element = make('g', {role: 'slider'}, this.layers.users)
    make('title', {}, make('circle', {class: 'hit', r: 9}, element))
    make('path', {}, element)
    element.dataset.user = id
    element.addEventListener('keydown', event => this.keyOfUser(event, id))
    element.addEventListener('focus', () => {
      this.current = id
      for (const [other, place] of this.users) set(place, {tabindex: other === id ? 0 : -1})
    })
    return element
  }

  drawGrips({line, ellipse, handles, fixed, names, range}) {
    const wanted = {}
    if (line && !fixed) {
      const [low] = range, place = this.on(line.movie, line.rating, low)
      wanted.rating = {
        place, label: `Rating of ${names[line.movie]}`, now: line.rating.toFixed(1),
        min: line.low, max: line.high, text: `${line.rating.toFixed(1)} stars`,
      }
    }
    if (handles && ellipse && !fixed) {
      const {mean, cov} = ellipse, radius = this.data.rings[0].radius
      const words = ['Rising axis', 'Falling axis']
      axes(cov).forEach(({sd, angle}, index) => {
        const reach = [Math.cos(angle), Math.sin(angle)].map(part => radius * sd * part)
        wanted[`axis${index}`] = {
          place: this.px([mean[0] + reach[0], mean[1] + reach[1]]),
          label: `${words[index]} of the ellipse`, now: said(sd), min: handles.axis[0],
          max: handles.axis[1],
          text: `standard deviation ${said(sd)}, angle ${Math.round(angle * 180 / Math.PI)}°`,
        }
      })
      wanted.middle = {
        place: this.px(mean), label: 'Middle of the ellipse', now: said(mean[0]),
        min: handles.mean[0], max: handles.mean[1],
        text: `${names[0]} ${said(mean[0])}, ${names[1]} ${said(mean[1])}`,
      }
    }
    for (const [name, element] of this.grips)
      if (!(name in wanted)) {
        element.remove()
        this.grips.delete(name)
      }
    for (const [name, {place, label, now, min, max, text}] of Object.entries(wanted)) {
      if (!this.grips.has(name)) this.grips.set(name, this.newGrip(name))
      const element = this.grips.get(name)
      set(element, {
        transform: `translate(${place.join(' ')})`, 'aria-label': label, 'aria-valuenow': now,
        'aria-valuemin': min, 'aria-valuemax': max, 'aria-valuetext': text,
      })
    }
  }

  newGrip(name) {
    const looks = {class: `grip ${name}`, role: 'slider', tabindex: 0}
    const element = make('g', looks, this.layers.grips)
    make('circle', {class: 'hit', r: 16}, element)
    if (name === 'middle') make('path', {d: 'M-7 0H7M0-7V7'}, element)
    else make('circle', {r: 7}, element)
    element.dataset.grip = name
    element.addEventListener('keydown', event => this.keyOfGrip(event, name))
    return element
  }

  drawSide({side}) {
    const key = JSON.stringify(side)
    if (this.legend === key) return
    this.legend = key
    this.side.replaceChildren()
    for (const [look, words] of side?.legend ?? []) {
      const row = document.createElement('div')
      const sign = make('svg', {width: 26, height: 16, class: 'sign', 'aria-hidden': 'true'}, row)
      const paths = {
        both: SHAPES.both, a: SHAPES.a, b: SHAPES.b, 'rug a': 'M0-6V6', 'rug b': 'M-6 0H6',
        diamond: 'M0-7L7 0L0 7L-7 0Z', grip: 'M-6 0a6 6 0 1 0 12 0a6 6 0 1 0-12 0Z',
      }
      const group = ['both', 'a', 'b'].includes(look) ? look : ''
      const inner = make('g', {transform: 'translate(13 8)', class: group}, sign)
      make('path', {d: paths[look] ?? 'M-12 0H12', class: group ? '' : look}, inner)
      row.append(words)
      this.side.append(row)
    }
    for (const [look, words] of side?.help ?? []) {
      const line = document.createElement('p')
      line.className = look
      line.textContent = words
      this.side.append(line)
    }
  }
}
