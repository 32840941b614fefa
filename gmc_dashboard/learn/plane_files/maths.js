// Two movies, in closed form: what the picture shows while something is being dragged. The
// numbers beside it are the core's; tests/browser/test_learn.py compares the two.
// A covariance is [[a, c], [c, b]], a point [x, y].

// Mean and covariance of points, 1/M as in gmc_core.lesson.gaussian_of.
export function moments(points) {
  const count = points.length
  const mean = [0, 1].map(k => points.reduce((sum, p) => sum + p[k], 0) / count)
  const cov = [0, 1].map(j => [0, 1].map(k =>
    points.reduce((sum, p) => sum + (p[j] - mean[j]) * (p[k] - mean[k]), 0) / count))
  return {mean, cov}
}

// Mean and standard deviation of the other movie for a user who gave `movie` this rating.
export function conditional({mean, cov}, noise, movie, rating) {
  const other = 1 - movie
  const slope = cov[other][movie] / (cov[movie][movie] + noise)
  const variance = cov[other][other] - slope * cov[movie][other]
  return {mean: mean[other] + slope * (rating - mean[movie]), sd: Math.sqrt(Math.max(variance, 0))}
}

// The ellipse's axes: standard deviation and angle in radians, first the one that rises (0° to
// 90°), then the one that falls (-90° to 0°). A circle's are put on the diagonals.
export function axes(cov) {
  const [[a, c], [, b]] = cov
  const half = (a - b) / 2, root = Math.hypot(half, c)
  let angle = root < 1e-9 ? Math.PI / 4 : Math.atan2(c, half) / 2
  let large = Math.sqrt(Math.max((a + b) / 2 + root, 0))
  let small = Math.sqrt(Math.max((a + b) / 2 - root, 0))
  if (angle < 0) {
    angle += Math.PI / 2
    ;[large, small] = [small, large]
  }
  return [{sd: large, angle}, {sd: small, angle: angle - Math.PI / 2}]
}

// The covariance whose axis at `angle` has standard deviation `sd`, and the one across it `across`.
export function covariance(sd, angle, across) {
  const u = [Math.cos(angle), Math.sin(angle)], v = [-u[1], u[0]]
  return [0, 1].map(j => [0, 1].map(k => sd * sd * u[j] * u[k] + across * across * v[j] * v[k]))
}

function cholesky([[a, c], [, b]]) {
  const first = Math.sqrt(a)
  return [first, c / first, Math.sqrt(Math.max(b - c * c / a, 1e-12))]
}

// A point moved as one Gaussian turns into another, as gmc_core.lesson.carried does.
export function carry(point, source, target) {
  const [p, q, r] = cholesky(source.cov), [s, t, u] = cholesky(target.cov)
  const first = (point[0] - source.mean[0]) / p
  const second = (point[1] - source.mean[1] - q * first) / r
  return [target.mean[0] + s * first, target.mean[1] + t * first + u * second]
}

// The picture's data after a change that the server has not answered yet.
export function applied(data, change) {
  if (change.what === 'rating') return {...data, line: {...data.line, rating: change.rating}}
  if (change.what === 'ellipse') {
    const target = {mean: change.mean, cov: change.cov}
    const users = data.users.map(user => ({...user, at: carry(user.at, data.ellipse, target)}))
    return {...data, users, ellipse: target}
  }
  let users = data.users.filter(user => user.id !== change.id)
  if (change.what === 'user') {
    const before = data.users.find(user => user.id === change.id)
    const kind = before?.kind ?? 'both'
    users.push({...before, id: change.id, kind, at: kept(kind, before?.at, change.at, data.slopes)})
  }
  if (!data.measured) return {...data, users}
  const both = users.filter(user => user.kind === 'both')
  return {...data, users, ellipse: moments(both.map(user => user.at))}
}

// Of a user who rated one movie only that rating moves; the other one's fill follows.
function kept(kind, before, at, slopes) {
  if (kind === 'a') return [at[0], before[1] + slopes[0] * (at[0] - before[0])]
  if (kind === 'b') return [before[0] + slopes[1] * (at[1] - before[1]), at[1]]
  return at
}
