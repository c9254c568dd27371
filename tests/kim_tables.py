"""Kim 2012 v1.01, Tables 4 to 7 to the letter, in plain matrices: link by link, joints of several coordinates, S and dS.

What goes in, T, S, dS, I, F_ext, tau and their derivatives by p, comes from `complex_step.Reference`; pX is dX/dp. A joint is
prescribed as a whole or not at all, as in the paper. Rotors add to S^T I S, passive forces to tau. Lines that the scan lost
are as in the notes: dPi, dbeta of a prescribed joint, (60)."""
import numpy as np

from complex_step import Reference, adjoint, bracket, inverse, parts, vee


class Body:
    """One link: what is known of it, and what the tables find, by name."""

    def __init__(self, link, v):
        self.parent, self.at = link.parent, link.v
        self.T, self.Ad_inv = np.real(link.T), np.real(adjoint(inverse(link.T)))
        self.h = vee(np.linalg.inv(self.T) @ parts(link.T)[1])                    # dh = T^-1 dT/dp
        (self.S, self.pS), (self.dS, self.pdS) = parts(link.S), parts(link.dS)
        (self.I, self.pI), (self.F_ext, self.pF_ext) = parts(link.I), parts(link.F)
        self.v, self.pv = parts(v[link.v])


def ad(V):
    return np.real(bracket(V))


class Tables:
    def __init__(self, reference: Reference, passive=True):
        self.bodies = [Body(link, reference.v) for link in reference.links]
        self.nv = reference.model.nv
        self.ground, self.p_ground = parts(reference.ground)
        self.rotor, self.p_rotor = parts(reference.figure("armature"))
        self.passive, self.p_passive = parts(reference.passive()) if passive else np.zeros((2, self.nv))
        self.velocities()

    def above(self, b, name):
        """X_parent of the body, or the ground's."""
        if b.parent >= 0:
            return getattr(self.bodies[b.parent], name)
        return {"dV": self.ground, "pdV": self.p_ground}.get(name, np.zeros(6))

    def velocities(self):
        """First recursion of each table: V, eta and their derivatives."""
        for b in self.bodies:
            Vp = b.Ad_inv @ self.above(b, "V")
            b.V = Vp + b.S @ b.v
            b.pV = b.Ad_inv @ self.above(b, "pV") - ad(b.h) @ Vp + b.pS @ b.v + b.S @ b.pv
            b.eta = ad(b.V) @ b.S @ b.v + b.dS @ b.v
            b.p_eta = (ad(b.pV) @ b.S @ b.v + ad(b.V) @ (b.pS @ b.v + b.S @ b.pv) + b.pdS @ b.v + b.dS @ b.pv)

    def table_5(self, a, pa):
        """Derivative of inverse dynamics: tau, dtau/dp."""
        tau, p_tau = self.rotor * a - self.passive, self.p_rotor * a + self.rotor * pa - self.p_passive
        for b in self.bodies:
            x, px = a[b.at], pa[b.at]
            dVp = b.Ad_inv @ self.above(b, "dV")
            b.dV = dVp + b.S @ x + b.eta
            b.pdV = b.Ad_inv @ self.above(b, "pdV") - ad(b.h) @ dVp + b.pS @ x + b.S @ px + b.p_eta
            b.F = b.I @ b.dV - ad(b.V).T @ b.I @ b.V - b.F_ext
            b.pF = (b.pI @ b.dV + b.I @ b.pdV - ad(b.pV).T @ b.I @ b.V - ad(b.V).T @ (b.pI @ b.V + b.I @ b.pV) - b.pF_ext)
        for b in self.bodies[::-1]:
            tau[b.at] += b.S.T @ b.F
            p_tau[b.at] += b.pS.T @ b.F + b.S.T @ b.pF
            if b.parent >= 0:
                p = self.bodies[b.parent]
                p.F = p.F + b.Ad_inv.T @ b.F
                p.pF = p.pF + b.Ad_inv.T @ (b.pF - ad(b.h).T @ b.F)
        return tau, p_tau

    def tables_6_and_7(self, a, tau, prescribed, pa, p_tau):
        """Derivative of hybrid dynamics (of forward dynamics, Table 6, where nothing is prescribed): a, tau, da/dp, dtau/dp."""
        (a, tau), (pa, p_tau) = (np.array([x, y], dtype=float) for x, y in ((a, tau), (pa, p_tau)))
        for b in self.bodies:
            b.AI, b.pAI = b.I, b.pI
            b.AB = -ad(b.V).T @ b.I @ b.V - b.F_ext
            b.pAB = -ad(b.pV).T @ b.I @ b.V - ad(b.V).T @ (b.pI @ b.V + b.I @ b.pV) - b.pF_ext
        for b in self.bodies[::-1]:
            if prescribed[b.at].all():                             # fixed joints have nothing that is not
                self.given(b, a[b.at], pa[b.at])
            else:
                self.asked(b, (tau + self.passive)[b.at], (p_tau + self.p_passive)[b.at])
            if b.parent >= 0:
                p, turn = self.bodies[b.parent], b.Pi @ ad(b.h)
                p.AI, p.AB = p.AI + b.Ad_inv.T @ b.Pi @ b.Ad_inv, p.AB + b.Ad_inv.T @ b.beta
                p.pAI = p.pAI + b.Ad_inv.T @ (b.pPi - turn - turn.T) @ b.Ad_inv
                p.pAB = p.pAB + b.Ad_inv.T @ (b.p_beta - ad(b.h).T @ b.beta)
        for b in self.bodies:
            dVp = b.Ad_inv @ self.above(b, "dV") + b.eta
            pdVp = b.Ad_inv @ self.above(b, "pdV") - ad(b.h) @ b.Ad_inv @ self.above(b, "dV") + b.p_eta
            if not prescribed[b.at].all():
                rest = b.tau - b.S.T @ b.AI @ dVp - b.S.T @ b.AB
                a[b.at] = b.Psi @ rest
                pa[b.at] = b.pPsi @ rest + b.Psi @ (b.p_tau - (b.pS.T @ b.AI + b.S.T @ b.pAI) @ dVp - b.S.T @ b.AI @ pdVp
                                                    - b.pS.T @ b.AB - b.S.T @ b.pAB)
            x, px = a[b.at], pa[b.at]
            b.dV, b.pdV = dVp + b.S @ x, pdVp + b.pS @ x + b.S @ px
            b.F, b.pF = b.AI @ b.dV + b.AB, b.pAI @ b.dV + b.AI @ b.pdV + b.pAB
            if prescribed[b.at].all():
                tau[b.at] = b.S.T @ b.F + (self.rotor * a - self.passive)[b.at]
                p_tau[b.at] = b.pS.T @ b.F + b.S.T @ b.pF + (self.p_rotor * a + self.rotor * pa - self.p_passive)[b.at]
        return a, tau, pa, p_tau

    def given(self, b, x, px):
        b.Pi, b.pPi = b.AI, b.pAI
        b.beta = b.AB + b.AI @ (b.eta + b.S @ x)
        b.p_beta = b.pAB + b.pAI @ (b.eta + b.S @ x) + b.AI @ (b.p_eta + b.pS @ x + b.S @ px)

    def asked(self, b, tau, p_tau):
        b.tau, b.p_tau = tau, p_tau
        U = b.AI @ b.S
        b.Psi = np.linalg.inv(b.S.T @ U + np.diag(self.rotor[b.at]))
        once = b.pS.T @ U
        b.pPsi = -b.Psi @ (b.S.T @ b.pAI @ b.S + once + once.T + np.diag(self.p_rotor[b.at])) @ b.Psi
        b.Pi = b.AI - U @ b.Psi @ U.T
        once = b.pAI @ b.S @ b.Psi @ U.T + b.AI @ b.pS @ b.Psi @ U.T
        b.pPi = b.pAI - (U @ b.pPsi @ U.T + once + once.T)
        w = b.AI @ b.eta + b.AB
        rest = tau - b.S.T @ w
        p_rest = p_tau - b.pS.T @ w - b.S.T @ (b.pAI @ b.eta + b.AI @ b.p_eta + b.pAB)
        b.beta = b.AB + b.AI @ (b.eta + b.S @ b.Psi @ rest)
        b.p_beta = (b.pAB + b.pAI @ (b.eta + b.S @ b.Psi @ rest)
                    + b.AI @ (b.p_eta + (b.pS @ b.Psi + b.S @ b.pPsi) @ rest + b.S @ b.Psi @ p_rest))
