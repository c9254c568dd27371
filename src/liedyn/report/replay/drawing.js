// WebGL 2: many solids of a few kinds in one call each, lines of a width in pixels, shadows on the ground.

const SOLID_VERTEX = `#version 300 es
layout(location=0) in vec3 p; layout(location=1) in vec3 n; layout(location=2) in mat4 place; layout(location=6) in vec4 colour;
uniform mat4 view; uniform vec4 light; uniform float floorZ; uniform bool shadow;
out vec3 world, normal; out vec4 paint;
void main() {
  vec4 w = place * vec4(p, 1.0);
  world = w.xyz; paint = colour;
  vec3 squares = vec3(dot(place[0].xyz, place[0].xyz), dot(place[1].xyz, place[1].xyz), dot(place[2].xyz, place[2].xyz));
  normal = mat3(place) * (n / max(squares, vec3(1e-20)));
  if (shadow) w.xyz -= light.xyz * ((w.z - floorZ) / light.z);
  gl_Position = view * w;
}`;
const SOLID_FRAGMENT = `#version 300 es
precision highp float;
in vec3 world, normal; in vec4 paint;
uniform vec3 eye; uniform vec4 light; uniform float floorZ; uniform bool shadow; uniform vec4 shade; uniform bool twoSided, frontOnly;
out vec4 result;
void main() {
  if (shadow) { if (world.z < floorZ) discard; result = shade; return; }
  vec3 n = normalize(normal), toEye = normalize(eye - world);
  if (twoSided && dot(n, toEye) < 0.0) { if (frontOnly) discard; n = -n; }
  float sky = 0.5 + 0.5 * n.z, lit = max(dot(n, light.xyz), 0.0), back = max(dot(n, -light.xyz), 0.0);
  float gloss = pow(max(dot(n, normalize(light.xyz + toEye)), 0.0), 40.0);
  result = vec4(paint.rgb * (0.34 + 0.26 * sky + 0.50 * lit + 0.06 * back) + 0.18 * gloss, 1.0) * paint.a;
}`;
const LINE_VERTEX = `#version 300 es
layout(location=0) in vec3 a; layout(location=1) in vec3 b; layout(location=2) in vec4 colour;
uniform mat4 view; uniform vec2 pixels; uniform float width; uniform vec4 tint;
out vec4 paint;
void main() {
  vec4 p = view * vec4(a, 1.0), q = view * vec4(b, 1.0);
  float near = 1e-4;
  if (p.w < near && q.w > near) p = mix(p, q, (near - p.w) / (q.w - p.w));
  if (q.w < near && p.w > near) q = mix(q, p, (near - q.w) / (p.w - q.w));
  vec2 way = q.xy / q.w * pixels - p.xy / p.w * pixels;
  vec2 side = length(way) > 1e-6 ? normalize(vec2(-way.y, way.x)) : vec2(0.0);
  float s = (gl_VertexID & 1) == 0 ? -1.0 : 1.0;
  vec4 end = gl_VertexID < 2 ? p : q;
  gl_Position = vec4(end.xy + s * side * width / pixels * end.w, end.zw);
  paint = vec4(colour.rgb * colour.a, colour.a) * tint;
}`;
const LINE_FRAGMENT = `#version 300 es
precision highp float;
in vec4 paint; out vec4 result;
void main() { result = paint; }`;
const LIGHT = [...unit([0.35, -0.45, 0.85]), 0];

// Without a graphics processor, smooth edges by the browser halve the number of frames a second.
function drawnBySoftware() {
  const gl = document.createElement("canvas").getContext("webgl2"), told = gl?.getExtension("WEBGL_debug_renderer_info");
  const name = told ? gl.getParameter(told.UNMASKED_RENDERER_WEBGL) : "";
  gl?.getExtension("WEBGL_lose_context")?.loseContext();
  return /swiftshader|llvmpipe|software|basic render/i.test(name);
}

class Drawing {
  constructor(canvas) {
    this.bySoftware = drawnBySoftware();
    // without alpha the browser does not blend the picture with what is behind it: a tenth of a frame by software
    const gl = canvas.getContext("webgl2", { antialias: !this.bySoftware, stencil: true, alpha: false });
    if (!gl) throw new Error("this browser has no WebGL 2, which the picture is drawn with");
    this.gl = gl;
    this.canvas = canvas;
    this.solid = this.program(SOLID_VERTEX, SOLID_FRAGMENT);
    this.line = this.program(LINE_VERTEX, LINE_FRAGMENT);
    this.kinds = [];
    for (const [name, solid] of Object.entries(solids(this.bySoftware))) this.add(name, solid);
    this.lineArray = gl.createVertexArray();
  }

  program(vertex, fragment) {
    const gl = this.gl, program = gl.createProgram();
    for (const [kind, text] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, text);
      gl.compileShader(shader);
      if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS) && !gl.isContextLost()) throw new Error(gl.getShaderInfoLog(shader));
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    const places = {};
    for (let k = 0; k < gl.getProgramParameter(program, gl.ACTIVE_UNIFORMS); k++) {
      const { name } = gl.getActiveUniform(program, k);
      places[name] = gl.getUniformLocation(program, name);
    }
    return { program, places };
  }

  // twoSided: files do not agree which side of a triangle is the outer one
  add(name, { vertices, triangles }, twoSided = false) {
    const gl = this.gl, array = gl.createVertexArray(), instances = gl.createBuffer();
    gl.bindVertexArray(array);
    gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
    gl.bufferData(gl.ARRAY_BUFFER, new Float32Array(vertices), gl.STATIC_DRAW);
    for (const k of [0, 1]) { gl.enableVertexAttribArray(k); gl.vertexAttribPointer(k, 3, gl.FLOAT, false, 24, 12 * k); }
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, gl.createBuffer());
    gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, new Uint32Array(triangles), gl.STATIC_DRAW);
    gl.bindBuffer(gl.ARRAY_BUFFER, instances);
    for (let k = 0; k < 5; k++) {
      gl.enableVertexAttribArray(2 + k);
      gl.vertexAttribPointer(2 + k, 4, gl.FLOAT, false, 80, 16 * k);
      gl.vertexAttribDivisor(2 + k, 1);
    }
    this.kinds.push({ name, array, instances, twoSided, count: triangles.length });
  }

  lines(numbers) {                                          // ten a line: both ends, colour
    const gl = this.gl, buffer = gl.createBuffer();
    gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
    gl.bufferData(gl.ARRAY_BUFFER, new Float32Array(numbers), gl.STATIC_DRAW);
    return { buffer, count: numbers.length / 10 };
  }

  begin(camera, background) {
    const gl = this.gl;
    gl.viewport(0, 0, this.canvas.width, this.canvas.height);
    gl.clearColor(...background, 1);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT | gl.STENCIL_BUFFER_BIT);
    gl.enable(gl.DEPTH_TEST);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    this.camera = camera;
  }

  // solids: {kind: numbers}, twenty a solid: its place and its colour
  drawSolids(solids, { clear = false, shadow = null, over = false } = {}) {
    const gl = this.gl, { program, places } = this.solid;
    if (over) gl.clear(gl.DEPTH_BUFFER_BIT);
    gl.useProgram(program);
    gl.uniformMatrix4fv(places.view, false, this.camera.view);
    gl.uniform3fv(places.eye, this.camera.eye);
    gl.uniform4fv(places.light, LIGHT);
    gl.uniform1i(places.shadow, shadow ? 1 : 0);
    gl.uniform1f(places.floorZ, shadow ? shadow.floor : 0);
    gl.uniform4fv(places.shade, shadow ? shadow.shade : [0, 0, 0, 0]);
    if (shadow) {                                           // each pixel once, however many solids throw their shadow on it
      gl.enable(gl.STENCIL_TEST);
      gl.stencilFunc(gl.EQUAL, 0, 255);
      gl.stencilOp(gl.KEEP, gl.KEEP, gl.INCR);
    } else {
      gl.enable(gl.CULL_FACE);
    }
    if (clear || shadow) { gl.enable(gl.BLEND); gl.depthMask(false); }
    for (const kind of this.kinds) {
      const numbers = solids[kind.name];
      if (!numbers || !numbers.length) continue;
      if (!shadow) gl[kind.twoSided ? "disable" : "enable"](gl.CULL_FACE);           // it would take the front of mirrored meshes
      gl.uniform1i(places.twoSided, kind.twoSided ? 1 : 0);
      gl.uniform1i(places.frontOnly, clear ? 1 : 0);
      gl.bindVertexArray(kind.array);
      gl.bindBuffer(gl.ARRAY_BUFFER, kind.instances);
      gl.bufferData(gl.ARRAY_BUFFER, new Float32Array(numbers), gl.DYNAMIC_DRAW);
      gl.drawElementsInstanced(gl.TRIANGLES, kind.count, gl.UNSIGNED_INT, 0, numbers.length / 20);
    }
    gl.depthMask(true);
    for (const state of [gl.BLEND, gl.CULL_FACE, gl.STENCIL_TEST]) gl.disable(state);
  }

  drawLines({ buffer, count }, width, { from = 0, until = count, tint = [1, 1, 1, 1] } = {}) {
    if (until <= from) return;
    const gl = this.gl, { program, places } = this.line;
    gl.useProgram(program);
    gl.uniformMatrix4fv(places.view, false, this.camera.view);
    gl.uniform2f(places.pixels, this.canvas.width, this.canvas.height);
    gl.uniform1f(places.width, width);
    gl.uniform4fv(places.tint, tint);
    gl.bindVertexArray(this.lineArray);
    gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
    [[3, 0], [3, 12], [4, 24]].forEach(([size, offset], k) => {
      gl.enableVertexAttribArray(k);
      gl.vertexAttribPointer(k, size, gl.FLOAT, false, 40, 40 * from + offset);
      gl.vertexAttribDivisor(k, 1);
    });
    gl.enable(gl.BLEND);
    gl.depthMask(false);
    gl.drawArraysInstanced(gl.TRIANGLE_STRIP, 0, 4, until - from);
    gl.depthMask(true);
    gl.disable(gl.BLEND);
  }
}
