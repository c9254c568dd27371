// Meshes of the data as solids, with normals: smooth, but for edges that are sharper than CREASE.

const CREASE = Math.cos(40 * Math.PI / 180);

async function meshSolid({ low, points, corners }) {        // the inverse of `packed_mesh` in mesh_files.py
  const [columns, [behind]] = await Promise.all([unpacked(points), unpacked(corners)]);
  const [x, y, z] = columns.map((column, j) => column.map((value) => value + low[j]));
  let next = 0;
  const index = Uint32Array.from(behind, (d) => (d === 0 ? next++ : next - d));
  const at = (k) => [x[k], y[k], z[k]], faces = index.length / 3;
  const around = Array.from(x, () => []), areas = [], units = [];
  for (let f = 0; f < faces; f++) {
    const [a, b, c] = [0, 1, 2].map((j) => at(index[3 * f + j])), area = cross(minus(b, a), minus(c, a));
    areas.push(area);
    units.push(unit(area));
    for (let j = 0; j < 3; j++) around[index[3 * f + j]].push(f);
  }
  const vertices = [], triangles = [], made = Array.from(x, () => []);
  for (let f = 0; f < faces; f++) {
    for (let j = 0; j < 3; j++) {
      const k = index[3 * f + j];
      let sum = [0, 0, 0];
      for (const other of around[k]) if (dot(units[f], units[other]) > CREASE) sum = along(sum, areas[other], 1);
      const normal = unit(sum);
      let corner = made[k].find((one) => dot(one.normal, normal) > 0.999);
      if (!corner) {
        corner = { normal, number: vertices.length / 6 };
        made[k].push(corner);
        vertices.push(...at(k), ...normal);
      }
      triangles.push(corner.number);
    }
  }
  return { vertices, triangles };
}
